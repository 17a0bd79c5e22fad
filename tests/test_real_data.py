"""Real data: what the wheels hold, published log likelihoods, splits, and the models of people against known truth."""

import csv
import math
from dataclasses import replace
from functools import partial

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks._reporting import read
from benchmarks.real import CASES, bins_of, clustered_error, data, is_asked, ours, rivals

pytestmark = pytest.mark.skipif(
    bool(data.missing_wheels()), reason=f"not installed: {', '.join(data.missing_wheels())}; see docs/real_data.md"
)

# answers, people
SIZES = {
    "Train": (2929, 235), "Electricity": (4308, 361), "Swissmetro": (6768, 752), "Swissmetro, all": (10719, 1191),
    "ModeCanada": (2779, 2779), "Heating": (900, 900), "HC": (250, 250), "Car": (4654, 4654), "Yogurt": (1310, 50),
    "Yogurt, habits": (1310, 50), "Catsup": (452, 50), "Catsup, habits": (452, 50), "VerbAgg": (3792, 158),
    "bfi": (2500, 100), "wine": (72, 9), "soup": (1847, 185), "rat": (20000, 1), "Kakadu": (1827, 1827),
    "TravelMode": (210, 210),
    "RainIbk": (4971, 4971), "Affairs": (601, 601), "NH4": (102, 102), "ModeCanada, pairs": (3 * 679, 679),
}  # fmt: skip


def answers_of(name, columns=None):
    """A data set, perhaps with some of its attributes."""
    answers = data.DATA[name].answers()
    if columns is None:
        return answers
    which = [answers.columns.index(column) for column in columns]
    return replace(answers, columns=tuple(columns), points=answers.points[..., which])


def parted(answers, way, fold=0):
    return [answers.take(which) for which in data.split(way, answers.person, fold)]


@pytest.mark.parametrize("name", data.DATA)
def test_answers_are_all_there_and_of_their_kind(name):
    answers, kind = answers_of(name), data.DATA[name].kind
    people = len(answers.person.unique())
    assert (len(answers), people) == SIZES[name]
    assert answers.points.isfinite().all()
    assert answers.points.shape[-1] == len(answers.columns)
    if isinstance(answers, data.Choices):
        assert answers.available.gather(1, answers.answer.unsqueeze(-1)).all()
        assert (answers.available.sum(-1) > 1).all()
        assert kind == ("pairs" if "pairs" in name else "choices" if people == len(answers) else "panel")
    elif isinstance(answers, data.Grades):
        assert len(answers.answer.unique()) == answers.num_outcomes
        assert kind == ("grades" if answers.num_outcomes > 2 else "labels")
    else:
        assert (answers.lower <= answers.upper).all()
        assert kind == "readings"
    if people in (1, len(answers)):
        assert [case["split"] for case in CASES if case["data"] == name] == ["known", "known"]


@pytest.mark.parametrize(
    ("name", "left_out", "published"),
    [
        ("Train", (), -1724.15),
        ("Electricity", (), -4958.65),
        ("Swissmetro", ("headway",), -5331.252),
        ("ModeCanada", ("urban of air", "urban of bus", "urban of car"), -1874.36),
        ("Heating", ("is gc", "is gr", "is ec", "is er"), -1095.24),
    ],
)
def test_conditional_logit_reaches_the_published_log_likelihood(name, left_out, published):
    choices = answers_of(name, [column for column in answers_of(name).columns if column not in left_out])
    assert rivals.fit_logit(choices)[1] == pytest.approx(published, abs=0.02)


def test_tobit_reaches_the_published_log_likelihood():
    answers = data.affairs()
    lower = torch.where(answers.lower.isfinite(), answers.lower.expm1(), -torch.inf)
    raw = replace(answers, lower=lower, upper=answers.upper.expm1())
    assert rivals.fit_normal_regression(raw)[-1] == pytest.approx(-705.6, abs=0.05)  # of R's AER


def test_cumulative_link_with_judges_is_that_of_the_package_ordinal():
    found = rivals.fit_mixed_cumulative_link(data.wine(), num_draws=2048)
    assert found.log_likelihood == pytest.approx(-81.565, abs=0.1)  # by Laplace's approximation
    assert found.parameters[1].tolist() == pytest.approx([3.063, 1.835], abs=0.02)


def test_pairs_of_the_example_of_prefgp():
    known, test = parted(answers_of("ModeCanada, pairs"), "library's")
    assert len(known) == 3 * round(0.7 * 679)
    assert not set(known.person.tolist()) & set(test.person.tolist())


def test_splits():
    person = torch.arange(40).repeat_interleave(8)
    known, held_out = data.split("known", person)
    assert torch.equal(torch.cat([known, held_out]).sort().values, torch.arange(320))
    assert (torch.bincount(person[held_out]) == 2).all()
    assert torch.equal(data.split("known", person)[1], held_out)
    held_out = torch.cat([data.split("known", person, fold)[1] for fold in range(4)])
    assert torch.equal(held_out.sort().values, torch.arange(320))
    known, held_out = data.split("new", person)
    assert len(held_out) == 64
    assert not set(person[known].tolist()) & set(person[held_out].tolist())
    assert len(data.split("known", torch.arange(100))[1]) == 25
    known, held_out = data.split("last", torch.tensor([0, 1, 0, 0, 1, 0, 0, 0, 0, 0]))
    assert held_out.tolist() == [4, 8, 9]  # two of eight, and one of two
    assert known.tolist() == [0, 1, 2, 3, 5, 6, 7]


def test_habits_of_a_scanner_panel_tell_the_choice_before():
    panel = answers_of("Yogurt, habits")
    first = torch.tensor([int((panel.person == person).nonzero()[0]) for person in panel.person.unique()])
    last = panel.points[..., -2]
    assert (last[first] == 0).all()
    later = torch.ones(len(panel), dtype=torch.bool).index_fill(0, first, False)
    assert torch.equal(last[later].argmax(-1), panel.answer[later.nonzero().squeeze(-1) - 1])
    known, test = parted(panel, "last")
    plain = parted(answers_of("Yogurt, habits", panel.columns[:-2]), "last")
    gain = rivals.conditional_logit(known, test).log_density - rivals.conditional_logit(*plain).log_density
    assert gain.mean() > 0.4  # of 1.1 nats


def test_graded_response_model_finds_two_abilities_again():
    generator = torch.Generator().manual_seed(0)
    item, person = torch.arange(6).repeat(80), torch.arange(80).repeat_interleave(6)
    ability = torch.randn(80, 2, generator=generator, dtype=torch.float64)
    level = 3 * ability[person, item % 2] + torch.randn(480, generator=generator, dtype=torch.float64)
    grades = (level.unsqueeze(-1) > torch.tensor([-1.0, 1.0])).sum(-1)
    answers = data.Grades(tuple("abcdef"), torch.eye(6).double()[item], person, grades, 3, item=item)
    known, held_out = parted(answers, "known")
    model = rivals.fit_graded_response(known, num_factors=2)
    loadings = torch.zeros(6, 2).double().index_put(tuple(torch.tril_indices(6, 2)), model.parameters[1])
    alike = torch.nn.functional.normalize(loadings, dim=-1)
    alike = (alike @ alike.mT).abs()
    same = (torch.arange(6) % 2 == (torch.arange(6) % 2).unsqueeze(-1)) & ~torch.eye(6, dtype=torch.bool)
    assert alike[same].mean() > alike[~same & ~torch.eye(6, dtype=torch.bool)].mean() + 0.4
    found = model.predict(held_out).log_density.mean()
    assert found > rivals.mixed_cumulative_link(known, held_out).log_density.mean()


def test_mixed_logit_recovers_a_simulated_panel():
    generator = torch.Generator().manual_seed(0)
    mean = torch.tensor([1.0, -1.5], dtype=torch.float64)
    covariance = torch.tensor([[1.0, 0.6], [0.6, 1.5]], dtype=torch.float64)
    people, asked = 300, 20
    person = torch.arange(people).repeat_interleave(asked)
    normal = torch.randn(people, 2, generator=generator, dtype=torch.float64)
    tastes = mean + normal @ torch.linalg.cholesky(covariance).mT
    points = torch.randn(people * asked, 3, 2, generator=generator, dtype=torch.float64)
    available = torch.rand(people * asked, 3, generator=generator) < 0.8
    available |= (available.sum(-1) < 2).unsqueeze(-1)
    gumbel = -(-torch.rand(people * asked, 3, generator=generator, dtype=torch.float64).log()).log()
    utility = (points * tastes[person].unsqueeze(1)).sum(-1) + gumbel
    chosen = utility.masked_fill(~available, -torch.inf).argmax(-1)
    panel = data.Choices(("a", "b"), points, person, available, chosen)
    known, held_out = data.split("known", person)
    model = rivals.fit_mixed_logit(panel.take(known))
    found, root = model.parameters
    scales = rivals.spreads(panel.take(known))
    assert torch.allclose(found / scales, mean, atol=0.25)
    root = root.tril() / scales.unsqueeze(-1)
    assert torch.allclose(root @ root.mT, covariance, atol=0.5)
    said = model.predict(panel.take(held_out))
    assert torch.allclose(said.probabilities.sum(-1), torch.ones(len(held_out), dtype=torch.float64))
    assert (said.probabilities[~panel.available[held_out]] == 0).all()
    order = torch.randperm(len(held_out), generator=generator)
    again = model.predict(panel.take(held_out[order])).probabilities
    assert torch.allclose(again, said.probabilities[order], rtol=1e-12, atol=0.0)
    mixed = said.log_density.mean()
    shared = rivals.conditional_logit(panel.take(known), panel.take(held_out)).log_density.mean()
    assert mixed > shared + 0.05


def test_densities_of_readings():
    mean, deviation = torch.zeros(5, dtype=torch.float64), torch.tensor(2.0, dtype=torch.float64)
    lower = torch.tensor([1.0, -math.inf, 3.0, 30.0, -math.inf], dtype=torch.float64)
    upper = torch.tensor([1.0, -1.0, 5.0, math.inf, math.inf], dtype=torch.float64)
    found = rivals.log_density_of_readings(mean, deviation, lower, upper)
    normal = torch.distributions.Normal(mean[0], deviation)
    assert float(found[0]) == pytest.approx(float(normal.log_prob(lower[0])))
    assert float(found[1].exp()) == pytest.approx(float(normal.cdf(upper[1])))
    assert float(found[2].exp()) == pytest.approx(float(normal.cdf(upper[2]) - normal.cdf(lower[2])))
    assert float(found[3]) == pytest.approx(float(torch.special.log_ndtr(torch.tensor(-15.0).double())))
    assert float(found[4]) == pytest.approx(0.0)


def test_standardised_readings_have_the_density_of_the_data():
    known, test = data.ammonium().take(torch.arange(0, 100, 2)), data.ammonium().take(torch.arange(1, 100, 2))
    read = test.take((test.lower == test.upper).nonzero().squeeze(-1))
    scaled = [replace(each, lower=10 * each.lower, upper=10 * each.upper) for each in (known, read)]
    for fit in (ours.skew_gp, partial(ours.skew_gp, inducing=True)):
        of_data, of_scaled = fit(known, read).log_density, fit(*scaled).log_density
        assert torch.allclose(of_scaled, of_data - math.log(10), atol=1e-3)


def test_errors_within_and_between_people():
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(2000, generator=generator, dtype=torch.float64)
    own = clustered_error(values, torch.arange(2000))
    assert own == pytest.approx(float(values.std()) / math.sqrt(2000), rel=1e-6)
    repeated = clustered_error(values.repeat_interleave(4), torch.arange(2000).repeat_interleave(4))
    assert repeated == pytest.approx(own, rel=1e-6)  # answers said four times tell no more


def test_bins_of_what_came_true():
    rows = [
        {"said": "0.95 0.05 0.95 0.05", "answers": "0 1", "person": "0 1"},
        {"said": "0.62 0.38", "answers": "0", "person": "2"},
    ]
    found = {cells["bin"]: tuple(cells[name] for name in ("outcomes", "said", "came_true")) for cells in bins_of(rows)}
    assert found[9] == (2, pytest.approx(0.95), 0.5)
    assert found[0] == (2, pytest.approx(0.05), 0.5)
    assert found[6] == (1, pytest.approx(0.62), 1.0)
    assert found[3] == (1, pytest.approx(0.38), 0.0)


def test_which_models_learn_from_what():
    def asked(*names, fold=0):
        return is_asked(names[0], "known", *names[1:], fold)

    assert asked("Train", "some", "SkewGP, EP")
    assert not asked("Train", "all", "SkewGP, EP")  # which has too many
    assert asked("Train", "some", "mixed logit")
    assert asked("Train", "all", "mixed logit")
    assert not asked("Train", "all", "mixed logit", fold=1)
    assert asked("Train", "all", "SkewGP, panel, EP")
    assert not asked("Train", "some", "SkewGP, panel, EP")
    assert not asked("Car", "all", "SkewGP, panel, EP")  # nobody answered twice
    assert not asked("Car", "all", "mixed logit")
    assert asked("wine", "all", "SkewGP, EP", fold=3)
    assert not asked("wine", "some", "SkewGP, EP")  # which has few
    assert asked("rat", "all", "psytrack")
    assert not asked("soup", "all", "graded response, five factors")  # no questionnaire


def run_real(*arguments):
    main(["real", *arguments, f"--threads={torch.get_num_threads()}"])


def test_a_model_of_a_fold_runs_once(tmp_path, capsys):
    command = ["--only", "wine", "cumulative link", "--seeds=1", f"--output={tmp_path}"]
    run_real(*command)
    assert "4 of 4 runs are missing" in capsys.readouterr().err
    _, rows = read(tmp_path / "real_runs.csv")
    learnt = [(row["split"], row["part"], row["learnt"]) for row in rows]
    assert learnt == [("known", "all", "54"), ("new", "all", "56")]
    run_real(*command)
    assert "2 of 4 runs are missing" in capsys.readouterr().err  # of parts, of which there are none


def test_stored_rows_stay_until_their_model_runs_again(tmp_path):
    names = ["data", "split", "part", "model", "seed", "learnt", "seconds", "peak_mb", "person", "log_density"]

    def store(commit: str, *models: tuple[str, float]) -> list[list[str]]:
        wine = ["wine", "known", "all"]
        rows = [[*wine, model, 0, 54, 1, 0, "0 1", f"{-nats} {-nats}", commit] for model, nats in models]
        with (tmp_path / "real_runs.csv").open("w") as file:
            csv.writer(file).writerows([[*names, "commit"], *rows])
        run_real("--seconds=0", f"--output={tmp_path}")
        _, found = read(tmp_path / "real.csv")
        return [[row[name] for name in ("model", "nats", "commit", "part", "behind_linear")] for row in found]

    store("aaaaaaa", ("SkewGP, EP", 1.5), ("boosting", 2.0))
    assert store("bbbbbbb", ("cumulative link", 1.0), ("SkewGP, EP", 1.25)) == [
        ["cumulative link", "1", "bbbbbbb", "all", ""],
        ["SkewGP, EP", "1.25", "bbbbbbb", "all", "0.25"],
        ["boosting", "2", "aaaaaaa", "all", ""],
    ]


def test_psytrack_follows_a_weight_that_changes_its_sign():
    generator = torch.Generator().manual_seed(0)
    trial = torch.arange(1200, dtype=torch.float64)
    signal = torch.randn(1200, generator=generator, dtype=torch.float64)
    yes = (3 * (trial / 190).cos() * signal).sigmoid()  # two turns
    grades = (torch.rand(1200, generator=generator) < yes).long()
    points = torch.stack([signal, trial / (SIZES["rat"][0] - 1)], dim=-1)
    order = torch.randperm(1200, generator=generator)
    simulated = data.Grades(("signal", "trial"), points, torch.zeros_like(grades), grades, 2).take(order)
    known, test = simulated.take(torch.arange(900)), simulated.take(torch.arange(900, 1200))
    found = rivals.psytrack(known, test)
    truth = rivals.of_outcomes(yes[order[900:]], test)
    assert (truth.log_density - found.log_density).mean() < 0.05
    assert found.log_density.mean() > 0.15 - math.log(2)  # a weight that stays says next to nothing


def test_kernel_of_duels_is_that_of_differences():
    generator = torch.Generator().manual_seed(0)
    pairs = torch.rand(3, 2, 2, generator=generator, dtype=torch.float64)
    utility = ours.RBFKernel().double()
    contrast = torch.kron(torch.eye(3), torch.tensor([[1.0, -1.0]])).double()
    expected = contrast @ utility(pairs.flatten(0, 1)).to_dense() @ contrast.mT
    kernel = ours.CovarianceOfDuels(utility)
    assert torch.allclose(kernel(pairs.flatten(1)).to_dense(), expected)
    assert torch.allclose(kernel(pairs.flatten(1), diag=True), expected.diagonal())
