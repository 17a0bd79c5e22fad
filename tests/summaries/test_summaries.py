"""Summaries beside what posteriors and predictions say, and made-up truths."""

import numpy
import pandas
import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import LinearKernel
from gpytorch.means import ZeroMean

from botorch_skewgp import SkewGP
from botorch_skewgp.frames import read_choices, read_event_times, read_grades, read_rankings
from botorch_skewgp.items import item_model, read_votes
from botorch_skewgp.summaries import (
    event_curve,
    outcome_probabilities,
    part_worths,
    predictions,
    reliabilities,
    segments,
    shares,
    tastes,
    top_items,
    willingness_to_pay,
)
from botorch_skewgp.summaries.segments import _Evidence, _evidence, _fitted

OFFER = pandas.DataFrame({"price": [1.0, 2.0, 0.5], "brand": ["n", "s", "s"]}, index=["a", "b", "c"])
SIMULATED = 0.03  # three standard errors of a mean of 1,024 draws of a probability, at most .016 each, and more


def trips(none=False, seed=0):
    """Choices of four people, who like brand s and low prices."""
    draws = numpy.random.default_rng(seed)
    rows = []
    for person in ("ann", "bob", "eve", "dan"):
        for trip in range(6):
            price, brand = draws.uniform(0.5, 2.0, 3), draws.permutation(["n", "s", "s"])
            utility = -2 * price + 2 * (brand == "s") + draws.standard_normal(3)
            best = 3 if none and utility.max() < -1.0 else utility.argmax()
            for i in range(4 if none else 3):
                cells = (price[i], brand[i]) if i < 3 else (None, "none")
                rows.append((person, trip, *cells, int(i == best)))
    return pandas.DataFrame(rows, columns=["id", "trip", "price", "brand", "chosen"])


@pytest.fixture(scope="module", params=[False, True], ids=["choices", "with none"])
def panel(request):
    """A model of choices with its answers; parameters are the default ones."""
    none = "none" if request.param else None
    answers = read_choices(trips(request.param), "trip", "chosen", ["price", "brand"], "id", "brand", none)
    X = answers.train_X
    scaled = Normalize(2, bounds=torch.tensor([[0.0, 0.0], [3.0, 1.0]], dtype=X.dtype))
    return SkewGP(X, answers.observations, approximation="ep", input_transform=scaled), answers


def test_tastes_are_contrasts_of_the_joint_posterior(panel):
    model, answers = panel
    for person in ("all", "eve"):
        judge = None if person == "all" else answers.judge(person)
        table = part_worths(model, answers, people=[person]).loc[person]
        background = answers.train_X[torch.linspace(0, len(answers.train_X) - 1, 4).round().long()]
        at = []
        for brand in (0.0, 1.0):
            points = background.clone()
            points[:, 1] = brand
            at.append(model.posterior(points, judge=judge).mean.mean())
        expected = (at[1] - at[0]) / 2
        assert table.loc[("brand", "s"), "mean"] == pytest.approx(float(expected), abs=4 * 0.5 / 32)
        assert table.loc[("brand", "s"), "mean"] == pytest.approx(-table.loc[("brand", "n"), "mean"])
        effect = tastes(model, answers, people=[person]).loc[person]
        assert effect.loc[("brand", "s"), "mean"] == pytest.approx(2 * table.loc[("brand", "s"), "mean"], abs=1e-4)
        worths = table.loc["price"]
        slope = numpy.polyfit(worths.index.astype(float), worths["mean"], 1)[0]
        assert effect.loc[("price", ""), "mean"] == pytest.approx(slope, abs=1e-4)
        assert (table.lower < table["mean"]).all()
        assert (table["mean"] < table.upper).all()


def test_willingness_to_pay_is_infinite_where_price_may_not_matter(panel):
    model, answers = panel
    table = willingness_to_pay(model, answers, people=["all", "ann"])
    assert list(table.columns) == ["median", "lower", "upper", "p_price_falls"]
    assert list(table.index) == [(person, "brand", "s") for person in ("all", "ann")]
    unsure = table[table.p_price_falls < 0.95]
    assert (unsure.lower.abs() + unsure.upper.abs() == numpy.inf).all()
    assert (table[table.p_price_falls > 0.999][["lower", "upper"]].abs() < numpy.inf).all(axis=None)
    assert (table["median"] > 0).all()
    with pytest.raises(InputDataError, match=r"one of \['price'\]; got 'brand'"):
        willingness_to_pay(model, answers, "brand")


@pytest.mark.parametrize("who", ["bob", "new", "all"])
def test_shares_are_predictions_averaged(panel, who):
    """The mean share of one person is what the model predicts; that of new people, of a new one."""
    model, answers = panel
    table = shares(model, answers, OFFER, people="new" if who == "new" else [who])
    judge = {"new": "new", "all": None}.get(who, answers.judge(who))
    options = {"none": True} if answers.none else {}
    expected = model.predictive(answers.points(OFFER), judge=judge, **options).probs
    assert list(table.index) == ["a", "b", "c", *(["none"] if answers.none else [])]
    assert table["mean"].to_numpy() == pytest.approx(expected.numpy(), abs=SIMULATED)
    assert table["mean"].sum() == pytest.approx(1.0)


def test_shares_change_with_an_offer_and_weights(panel):
    model, answers = panel
    table = shares(model, answers, OFFER, after=OFFER.assign(price=[1.0, 2.0, 1.5]))
    before, after, change = (table.loc[name] for name in ("before", "after", "change"))
    assert change["mean"].to_numpy() == pytest.approx((after["mean"] - before["mean"]).to_numpy())
    assert change.loc["c", "mean"] < 0 < change.loc["b", "mean"]
    width = (change.upper - change.lower)["c"]  # of a difference of the same draws
    assert width < (before.upper - before.lower)["c"] + (after.upper - after.lower)["c"]
    one = shares(model, answers, OFFER, people=["ann", "bob"], weights=[0.0, 2.0])
    assert one["mean"].to_numpy() == pytest.approx(shares(model, answers, OFFER, people=["bob"])["mean"], abs=SIMULATED)
    with pytest.raises(InputDataError, match="one number from 0 on for each of 2 people"):
        shares(model, answers, OFFER, people=["ann", "bob"], weights=[1.0])


def test_predictions_of_many_people_are_those_of_each(panel):
    model, answers = panel
    frame = trips(seed=1)
    frame = frame.assign(id=frame.id.replace("dan", "stranger"))[(frame.trip != 2) | (frame.index % 3 > 0)]
    table = predictions(model, answers, frame, "trip", "id")
    assert list(table.columns) == ["probability", *(["none"] if answers.none else [])]
    for (person, _), rows in frame.groupby(["id", "trip"]):
        options = {"none": True} if answers.none else {}
        expected = model.predictive(answers.points(rows), judge=answers.judge(person), **options).probs
        if expected.ndim == 0:
            expected = torch.stack([expected, 1 - expected])
        found = table.loc[rows.index]
        assert found.probability.to_numpy() == pytest.approx(expected[: len(rows)].numpy(), abs=1e-6)
        if answers.none:
            assert found.none.to_numpy() == pytest.approx(float(expected[-1]), abs=1e-6)


def test_predictions_of_grades_have_a_column_for_each():
    draws = numpy.random.default_rng(0)
    frame = {"id": ["ann", "bob"] * 8, "sweet": draws.uniform(size=16), "stars": draws.integers(1, 4, size=16)}
    answers = read_grades(frame, "stars", ["sweet"], "id")
    model = SkewGP(answers.train_X, answers.observations, approximation="ep")
    table = predictions(model, answers, {"id": ["bob", "ann"], "sweet": [0.1, 0.9]}, person="id")
    for row, person in enumerate(("bob", "ann")):
        expected = model.predictive(answers.points({"sweet": [[0.1, 0.9][row]]}), judge=answers.judge(person)).probs
        assert table.iloc[row].to_numpy() == pytest.approx(expected.flatten().numpy(), abs=1e-6)


def test_outcomes_of_meetings_have_names():
    games = {
        "home": ["ada", "bee", "ada", "dog", "bee", "dog"] * 3,
        "away": ["bee", "ada", "dog", "ada", "dog", "bee"] * 3,
        "won": ["home", "home", "tie", "away", "home", "tie"] * 3,
    }
    games["at"] = games["home"]
    league = read_votes(games, "home", "away", outcome="won", advantages=["at"])
    model = item_model(3, league.observations, **league.circumstances, approximation="ep")
    asked = {"home": ["ada", "dog"], "away": ["bee", "ada"]}
    table = outcome_probabilities(model, league, asked, "home", "away", tie="draw", advantages=["home"])
    assert table.index.names == ["home", "away", "outcome"]
    for home, away in zip(asked["home"], asked["away"], strict=True):
        both = model.items_at()[[league.items.index(home), league.items.index(away)]]
        both[0, 1] = 1.0
        expected = model.predictive(both).probs  # first, second, tie
        found = table.loc[(home, away)]
        assert list(found.index) == ["home", "away", "draw"]
        assert found["mean"].to_numpy() == pytest.approx(expected.numpy(), abs=SIMULATED)
    with pytest.raises(InputDataError, match="1 advantages; name a column"):
        outcome_probabilities(model, league, asked, "home", "away")
    with pytest.raises(InputDataError, match=r"\['cat'\] had none"):
        outcome_probabilities(model, league, {"home": ["cat"], "away": ["ada"]}, "home", "away", advantages=["home"])


def test_the_best_items_of_each_person():
    draws = numpy.random.default_rng(1)
    worth = {"ann": [2.0, 1.0, 0.0, -1.0], "bob": [-1.0, 0.0, 1.0, 2.0]}
    rows = {"by": [], "a": [], "b": [], "c": [], "d": []}
    for person, utility in worth.items():
        for _ in range(8):
            order = (-(utility + 0.3 * draws.standard_normal(4))).argsort().argsort()
            rows["by"].append(person)
            for item, place in zip("abcd", order, strict=True):
                rows[item].append(int(place) + 1)
    answers = read_rankings(rows, items=["a", "b", "c", "d"], person="by")
    model = item_model(4, answers.observations, approximation="ep")
    table = top_items(model, answers, 2)
    assert table.loc["ann", "item"].tolist() == ["a", "b"]
    assert table.loc["bob", "item"].tolist() == ["d", "c"]
    assert table.p_top.min() > 0.5
    reliable = reliabilities(model, answers)
    assert list(reliable.index) == ["ann", "bob"]
    assert reliable["median"].to_numpy() == pytest.approx(model.judge_reliability.values.detach().numpy())
    model.judge_reliability.logarithm_prior.judge_variance[1] = 0.04
    wide = reliabilities(model, answers, people=["bob"], level=0.9).loc["bob"]
    assert numpy.log(wide.upper / wide["median"]) == pytest.approx(1.645 * 0.2, rel=1e-3)


def test_event_curves_are_predictions_of_log_times():
    draws = numpy.random.default_rng(0)
    dose = draws.uniform(size=20)
    time = numpy.exp(1.0 + dose + 0.3 * draws.standard_normal(20))
    late = time > 6
    frame = {
        "dose": dose,
        "from": numpy.minimum(time, 6),
        "to": [None if cut else t for cut, t in zip(late, time, strict=True)],
    }
    answers = read_event_times(frame, "from", "to", ["dose"])
    model = SkewGP(answers.train_X, answers.observations, outcome_transform=Standardize(m=1))
    asked = pandas.DataFrame({"dose": [0.1, 0.9]}, index=["low", "high"])
    table = event_curve(model, answers, asked, [2.0, 5.0])
    law = model.predictive(answers.points(asked))
    for place, time in enumerate((2.0, 5.0)):
        expected = law.cdf(torch.tensor(time, dtype=torch.double).log()).flatten().detach().numpy()
        found = table.xs(time, level="time")["mean"].to_numpy()
        assert found == pytest.approx(expected, abs=SIMULATED), place
    with pytest.raises(InputDataError, match="positive numbers"):
        event_curve(model, answers, asked, [0.0])


def test_part_worths_of_a_shared_utility_that_the_fit_found_to_be_none():
    answers = read_choices(trips(True), "trip", "chosen", ["price", "brand"], "id", "brand", "none")
    kernel = LinearKernel()
    kernel.variance = 1e-10  # beside the constant that tells what "none" is worth, of variance 10
    model = SkewGP(answers.train_X, answers.observations, covar_module=kernel, approximation="ep")
    table = part_worths(model, answers)
    assert table.abs().max().max() < 1e-2


def test_curves_where_a_linear_utility_is_known_for_certain():
    answers = read_event_times(
        {"dose": [0.0, 1.0, 2.0], "from": [1.0, 2.0, 5.0], "to": [2.0, 4.0, None]}, "from", "to", ["dose"]
    )
    model = SkewGP(answers.train_X, answers.observations, covar_module=LinearKernel(), mean_module=ZeroMean())
    asked = pandas.DataFrame({"dose": [0.0, 2.0]})
    table = event_curve(model, answers, asked, [1.0, 5.0])
    assert table["mean"].tolist()[0] == pytest.approx(0.5, abs=1e-4)  # of a median of 1, the exponential of 0
    width = (table.upper - table.lower).tolist()
    assert width[0] < 1e-3 < 0.05 < width[3]


def test_people_and_models_that_do_not_fit_are_refused(panel):
    model, answers = panel
    with pytest.raises(InputDataError, match="got 'zoe'"):
        part_worths(model, answers, people=["zoe"])
    with pytest.raises(InputDataError, match='"each" or a list'):
        part_worths(model, answers, people="ann")
    with pytest.raises(InputDataError, match="these answers name none"):
        top_items(model, answers, 1)
    with pytest.raises(UnsupportedError, match="no reliabilities"):
        reliabilities(model, answers)


def test_what_a_persons_answers_say_is_the_posterior_without_the_prior(panel):
    model, answers = panel
    shared, evidence, prior, _ = _evidence(model, answers, [0, 1])
    table = tastes(model, answers, people=["all", "ann"])["mean"]
    posterior = torch.linalg.solve(evidence.precision[0] + torch.linalg.inv(prior), evidence.pull[0])
    expected = table.loc["ann"].to_numpy() - table.loc["all"].to_numpy()
    assert posterior.numpy() == pytest.approx(expected, abs=0.15)
    assert shared.numpy() == pytest.approx(table.loc["all"].to_numpy(), abs=0.15)


def test_segments_far_apart_are_found_with_their_number():
    """Forty people in two groups, with estimates of different precision, against the groups that were drawn."""
    draws = torch.Generator().manual_seed(0)
    group = torch.arange(40) % 2
    centre = torch.tensor([[2.0, 0.0], [-2.0, 1.0]], dtype=torch.double)[group]
    precision = (1 + 8 * torch.rand(40, generator=draws, dtype=torch.double)).view(-1, 1, 1) * torch.eye(2)
    noise = torch.randn(40, 2, generator=draws, dtype=torch.double)
    estimate = centre + 0.2 * noise + noise.roll(1, 0) / precision[:, 0, :1].sqrt()
    evidence = _Evidence(precision, (precision @ estimate.unsqueeze(-1)).squeeze(-1))
    prior = 4 * torch.eye(2, dtype=torch.double)
    found = [_fitted(evidence, prior, k, 0) for k in (1, 2, 3)]
    assert min(found, key=lambda one: one.criterion) is found[1]
    which = found[1].joint.argmax(-1)
    assert max(int((which == group).sum()), int((which != group).sum())) >= 39
    means = found[1].mean[found[1].mean[:, 0].argsort(descending=True)]
    assert torch.allclose(means, torch.tensor([[2.0, 0.0], [-2.0, 1.0]], dtype=torch.double), atol=0.4)


def test_segments_have_names(panel):
    model, answers = panel
    found = segments(model, answers, k=2)
    assert found.sizes.share.sum() == pytest.approx(1.0)
    assert found.sizes.people.sum() == 4
    assert list(found.memberships.index) == ["ann", "bob", "dan", "eve"]
    assert found.memberships[[1, 2]].sum(axis=1).to_numpy() == pytest.approx(1.0)
    assert found.tastes.index.names == ["segment", "attribute", "value"]
