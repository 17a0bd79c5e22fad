"""Routes of what is done with a model: questions, safe searches, summaries, priors, predictors without points."""

from __future__ import annotations

import math
from copy import deepcopy
from functools import partial
from unittest import mock

import torch
from gpytorch.constraints import Positive
from gpytorch.priors import LogNormalPrior
from route_list import ANSWERS, Route
from route_list import route as registered
from route_problems import (
    Problem,
    answers_predicted,
    compares,
    judges_asked,
    kernel_of,
    model_of,
    new_points,
    observations_of,
    points_of,
)
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import SkewBayesianActiveLearningByDisagreement, next_pair, probability_of_safety
from botorch_skewgp.acquisition.dueling import qExpectedUtilityAfterAnswers
from botorch_skewgp.fitting.trivial import trivial_log_evidence
from botorch_skewgp.fitting.unbounded_density import UnboundedDensity
from botorch_skewgp.frames.answers import Answers
from botorch_skewgp.items import win_probabilities
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.models.defaults import as_logarithm
from botorch_skewgp.parameters import LogarithmPrior
from botorch_skewgp.summaries import event_curve, part_worths, predictions, tastes
from botorch_skewgp.summaries.tastes import design

USES: dict[str, Route] = {}
route = partial(registered, among=USES)
SAMPLES = 4096  # whose averages have errors of a 64th of a standard deviation
MANY_ERRORS = 5.0


def asks_duels(problem: Problem) -> bool:
    """Whether new answers may be duels."""
    if problem.beside == "duels beside":
        return problem.kind in ("labels", "grades", "numbers")
    return problem.kind in ("duels", "strengths", "ties", "votes", "choices", "tied rankings")


def judge_asked(problem: Problem) -> int | str | None:
    """A judge, or no one in particular where there is none."""
    return judges_asked(problem)[:2][-1]


def two_pairs(problem: Problem) -> tuple[Tensor, Tensor]:
    X = new_points(problem, 4)
    return X[:2], X[2:]


# Questions


@route(asks_duels)
def information_of_two_questions(problem: Problem) -> None:
    """The chain rule: what one pair tells, and the other beside its pending answer, is what both tell in any order;
    and a pair asked again tells less.
    """
    a, b = two_pairs(problem)
    model = model_of(problem).for_judge(judge_asked(problem))
    told = SkewBayesianActiveLearningByDisagreement(model, model.likelihood.kind_of_duels)

    def together(first: Tensor, second: Tensor) -> float:
        told.set_X_pending(None)
        alone = float(told(first))
        told.set_X_pending(first)
        return alone + float(told(second))

    one, other = together(a, b), together(b, a)
    assert abs(one - other) <= 0.02 * one + 1e-4, f"{one} and {other}"
    told.set_X_pending(None)
    alone = float(told(a))
    told.set_X_pending(a)
    assert float(told(a)) < alone


@route(asks_duels)
def worth_after_two_questions(problem: Problem) -> None:
    """What the best of all points is worth after two answers does not depend on which question is the pending one,
    nor on whether the model stands alone or as an ensemble of one.
    """
    a, b = two_pairs(problem)
    model = model_of(problem).for_judge(judge_asked(problem))
    sd = float(model.posterior(torch.cat([a, b])).variance.max().sqrt())
    one, other, member = (
        float(qExpectedUtilityAfterAnswers(each, [first])(second))
        for each, first, second in ((model, a, b), (model, b, a), (FullyBayesianSkewGP([model]), a, b))
    )
    assert abs(one - other) <= 0.1 * sd, f"{one} and {other}"
    assert abs(member - one) <= 0.1 * sd, f"{member} and {one}"


@route(asks_duels)
def challenger_by_hand(problem: Problem) -> None:
    """Against a point goes the candidate of the largest `E[max(f(x) - f(z), 0)]`, of normal differences; a question
    of which the answer is pending is not asked again, and a judge may be named in the call.
    """
    pool = new_points(problem, 5)
    against, others = pool[0], pool[1:]
    judge, whole = judge_asked(problem), model_of(problem)
    model = whole.for_judge(judge)
    pair, value = next_pair(whole, X_candidates=pool, against=against, judge=judge)
    gains = []
    for x in others:
        posterior = model.posterior(torch.stack([x, against]))
        difference = posterior.affine(torch.tensor([[1.0, -1.0]]).double())
        mean, sd = float(difference.mean), math.sqrt(float(difference.variance))
        normal = torch.distributions.Normal(0.0, 1.0)
        z = torch.tensor(mean / sd).double()
        gains.append(mean * float(normal.cdf(z)) + sd * math.exp(float(normal.log_prob(z))))
    order = sorted(range(len(gains)), key=gains.__getitem__, reverse=True)
    assert torch.equal(pair, torch.stack([others[order[0]], against]))
    assert abs(math.exp(value) - gains[order[0]]) <= 1e-4 * gains[order[0]], f"{math.exp(value)} for {gains[order[0]]}"
    further, _ = next_pair(whole, X_candidates=pool, against=against, judge=judge, pending=[pair])
    assert torch.equal(further[1], against)
    assert not torch.equal(further[0], pair[0])


@route(lambda problem: problem.kind == "duels" and problem.slips == "no slips" and not problem.has_judges, is_slow=True)
def pending_answers_are_the_likeliest(problem: Problem) -> None:
    """A pending pair counts as won by the option that is predicted to win."""
    pool, model = new_points(problem, 4), model_of(problem)
    told = []

    def remembered(self: SkewGP, X: Tensor, Y: list) -> SkewGP:
        told.append(int(Y[0].pairs[0, 0]))
        return self

    with mock.patch.object(SkewGP, "condition_on_observations", remembered):
        next_pair(model, X_candidates=pool, pending=pool[None, :2], seed=0)
    chance = float(answers_predicted(model, pool[:2])["Preference"])
    assert told == [0 if chance > 0.5 else 1], f"{told} for {chance}"


# Safe searches


@route(lambda problem: problem.kind in ("labels", "validity"))
def safety_by_simulation(problem: Problem) -> None:
    """The share of draws of the function in which an experiment works with the level or more."""
    X, model = new_points(problem), model_of(problem)
    kind = type(model.observations[0])
    likelihood = model.answering_likelihood.for_kind(kind)
    level = 0.6
    sure = probability_of_safety(model, X, level)
    torch.testing.assert_close(probability_of_safety(FullyBayesianSkewGP([model, deepcopy(model)]), X, level), sure)
    f = model.latent_posterior(X).rsample(torch.Size([SAMPLES])).squeeze(-1)
    share = (likelihood(f, scale=model.outcome_scale).probs >= level).double().mean(0)
    error = (sure * (1 - sure) / SAMPLES).sqrt()
    assert ((share - sure).abs() <= MANY_ERRORS * error + 2e-3).all(), f"{sure} for {share}"


# Summaries


def named(problem: Problem, model: SkewGP) -> Answers:
    """The problem's answers with names of inputs and people."""
    X = model.datapoints
    categories = {"b": ("x", "y", "z")} if problem.kernel == "categories" else {}
    people = tuple(f"p{j}" for j in range(max(model.judges, default=-1) + 1)) or None
    return Answers(X, model.observations, ("a", "b"), categories, people)


def frame_of(X: Tensor, answers: Answers) -> dict[str, list]:
    names = answers.levels.get("b")
    b = X[:, 1].tolist() if names is None else [names[int(value)] for value in X[:, 1]]
    return {"a": X[:, 0].tolist(), "b": b}


@route(lambda problem: problem.kind in ("numbers", "labels", "grades", "duels", "choices or none"))
def effects_of_the_posterior(problem: Problem) -> None:
    """Part-worths and slopes are linear in utilities: their means are those of the posterior, up to draws."""
    model = model_of(problem)
    answers = named(problem, model)
    at = design(answers)
    people = ["all", "new", "p1"] if problem.has_judges else ["all"]
    judges = [None, "new", 1][: len(people)]
    tables = part_worths(model, answers, people, num_samples=512), tastes(model, answers, people, num_samples=512)
    for table, weight in zip(tables, (at.weight, at.taste_weight @ at.weight), strict=True):
        for person, judge in zip(people, judges, strict=True):
            posterior = model.for_judge(judge).latent_posterior(at.X).affine(weight)
            said = torch.tensor(table.loc[person]["mean"].to_numpy())
            error = posterior.variance.squeeze(-1).sqrt() / 512**0.5
            apart = (said - posterior.mean.squeeze(-1)).abs()
            assert (apart <= MANY_ERRORS * error + 1e-3).all(), f"{person}: {said} for {posterior.mean.squeeze(-1)}"


@route(lambda problem: problem.kind in ("labels", "grades", "validity", "choices", "rankings", "duels"))
def table_of_predictions(problem: Problem) -> None:
    """A table of new answers holds the probabilities of each person's predictions."""
    model = model_of(problem)
    if len(getattr(model.likelihood, "likelihoods", ())) > 1:  # of which a table has no names
        return
    answers, X = named(problem, model), new_points(problem, 3)
    situation = "situation" if compares(model) else None
    named_as = {None: None, "new": "nobody"}
    for judge in judges_asked(problem):
        frame = frame_of(X, answers) | {"situation": [1] * len(X)}
        person = None
        if judge is not None:
            frame, person = frame | {"person": [named_as.get(judge, f"p{judge}")] * len(X)}, "person"
        table = torch.tensor(predictions(model, answers, frame, situation, person).to_numpy())
        predicted = model.predictive(X, judge=judge).probs
        if situation is not None:
            table = table[:, 0]
        elif predicted.ndim == 2 and predicted.shape[-1] == 1:
            table = table[:, 1:]
        torch.testing.assert_close(table.reshape(predicted.shape), predicted, rtol=1e-6, atol=1e-6)


@route(lambda problem: problem.kind in ("numbers", "censored") and problem.beside == "alone")
def curve_of_events(problem: Problem) -> None:
    """The average over draws of the probability of an event by a time is that of a new logarithm up to that time's."""
    model, X, times = model_of(problem), new_points(problem), torch.tensor([0.7, 1.5])
    answers = named(problem, model)
    table = event_curve(model, answers, frame_of(X, answers), times, num_samples=SAMPLES)
    said = torch.tensor(table["mean"].to_numpy()).view(len(X), len(times))
    predicted = model.predictive(X)
    right = torch.stack([predicted.cdf(time.log().double()).squeeze(-1) for time in times], dim=-1)
    assert ((said - right).abs() <= MANY_ERRORS * 0.5 / SAMPLES**0.5).all(), f"{said} for {right}"


@route(lambda problem: problem.kind in ("duels", "ties"))
def table_of_wins(problem: Problem) -> None:
    """The average over draws of the probability that an item wins is the predicted one."""
    model = model_of(problem)
    X = points_of(problem)
    for judge in judges_asked(problem)[1:] or (None,):
        wins = torch.tensor(win_probabilities(model, judge=judge, num_samples=SAMPLES).to_numpy())
        for i, j in ((0, 1), (4, 2)):
            predicted = answers_predicted(model, X[[i, j]], judge)
            right = float(next(iter(predicted.values())).flatten()[0])
            assert abs(float(wins[i, j]) - right) <= MANY_ERRORS * 0.5 / SAMPLES**0.5, f"{wins[i, j]} for {right}"


# Priors and predictors without points


@route(lambda problem: problem.kernel == "plain" and problem.kind in ("numbers", "labels", "duels"))
def prior_of_a_logarithm(problem: Problem) -> None:
    """A prior of a logarithm is no matter of how the parameter is stored: the objective has the same value and slope;
    and an average over hyperparameters has it whether the density is of the value or of the logarithm.
    """
    values, slopes, densities = [], [], []
    for constraint, prior in (
        (as_logarithm(), LogarithmPrior(0.4, 0.8)),
        (Positive(), LogarithmPrior(0.4, 0.8)),
        (Positive(), LogNormalPrior(0.4, 0.8)),
    ):
        kernel = kernel_of(problem)
        kernel.register_constraint("raw_outputscale", constraint)
        kernel.outputscale = 1.7
        kernel.register_prior("outputscale_prior", prior, "outputscale")
        model = model_of(problem, covar_module=kernel).train()
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
        value = mll(model(*model.train_inputs), model.train_targets)
        (slope,) = torch.autograd.grad(value, kernel.raw_outputscale)
        (change,) = torch.autograd.grad(kernel.outputscale.log(), kernel.raw_outputscale)
        values.append(float(value.detach()))
        slopes.append(float(slope / change))
        density = UnboundedDensity(mll)
        densities.append(float(density(density.start)[0]))
    assert abs(values[0] - values[1]) <= 1e-6 * (1 + abs(values[1])), f"{values}"
    assert abs(slopes[0] - slopes[1]) <= 1e-5 * (1 + abs(slopes[1])), f"{slopes}"
    assert abs(values[1] - values[2] - math.log(1.7)) <= 1e-6 * (1 + abs(values[1])), f"{values}"
    assert max(densities) - min(densities) <= 1e-6 * (1 + abs(densities[1])), f"{densities}"


@route(lambda problem: problem.kind in ANSWERS and problem.beside == "alone" and problem.weights != "fractions")
def predictor_without_points_in_turn(problem: Problem) -> None:
    """The evidence of frequencies is the product of `(n_k + 1/2) / (n + K / 2)` of one answer after the other."""
    told = [entry.outcomes for entry in observations_of(problem)]
    num = max(outcomes.num_labels for outcomes in told)
    seen: dict[int, int] = {}
    total = 0.0
    for outcomes in told:
        alike = torch.as_tensor(outcomes.num_alike).double().expand(len(outcomes.label))
        for label, ways in zip(outcomes.label.tolist(), alike.tolist(), strict=True):
            share = (seen.get(label, 0) + 0.5) / (sum(seen.values()) + 0.5 * num)
            total += math.log(share if num > 1 else 1.0) - math.log(ways)
            seen[label] = seen.get(label, 0) + 1
    found = trivial_log_evidence(model_of(problem))
    assert found is None or abs(found - total) <= 1e-9 * (1 + abs(total)), f"{found} for {total}"
