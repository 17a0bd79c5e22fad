"""The fields' standard models, in a few lines each: maximum likelihood by L-BFGS in double precision.

A model is a function of training answers and test answers that returns the log probability (or density) of each test
answer, and for choices and grades the probabilities of all outcomes.

Models of people draw their tastes `w_j ~ N(mean, L L^T)` by Sobol's sequence: the likelihood of a person's answers is
an average over the draws, and a known person's prediction weights them by it ([Train2009discrete]_, chapters 10, 11).

.. [Train2009discrete] K. Train. Discrete choice methods with simulation. 2nd edition. Cambridge University Press, 2009.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks.real.data import Choices, Grades, Readings, rat

TRAINING_DRAWS, TEST_DRAWS = 256, 2048
FAR = 40.0  # standard deviations, in place of infinity: its gradient is finite


class Predictions(NamedTuple):
    """What a model says of test answers.

    Args:
        log_density: An `m`-dim tensor: of what was answered.
        probabilities: An `m x k` tensor of outcomes; `None` for readings.
    """

    log_density: Tensor
    probabilities: Tensor | None = None


def of_outcomes(probabilities: Tensor, answers: Tensor) -> Predictions:
    """Predictions from probabilities of all outcomes."""
    return Predictions(probabilities.gather(-1, answers.unsqueeze(-1)).squeeze(-1).log(), probabilities)


def minimise(objective: Callable[..., Tensor], *start: Tensor, max_iter: int = 500) -> list[Tensor]:
    """The minimum of a smooth function of tensors, by L-BFGS."""
    parameters = [tensor.detach().clone().requires_grad_() for tensor in start]
    optimiser = torch.optim.LBFGS(
        parameters, max_iter=max_iter, history_size=20, tolerance_change=1e-10, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = objective(*parameters)
        value.backward()
        return value

    optimiser.step(closure)
    return [parameter.detach() for parameter in parameters]


# Choices


def _log_probabilities(points: Tensor, available: Tensor, tastes: Tensor) -> Tensor:
    """Logit probabilities, `m x k x ...`, of tastes `m x p x draws` or `p`."""
    utility = points @ tastes
    mask = available if utility.ndim == 2 else available.unsqueeze(-1)
    return utility.masked_fill(~mask, -torch.inf).log_softmax(1)


def _scales(data: Choices) -> Tensor:
    """The spread of each attribute among the options that were available."""
    mask = data.available.unsqueeze(-1)
    centre = (data.points * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)
    squares = ((data.points - centre).square() * mask).sum((0, 1)) / mask.sum()
    return squares.sqrt().clamp_min(1e-8)


def fit_logit(data: Choices) -> tuple[Tensor, float]:
    """The conditional logit's coefficients, and the log likelihood that they reach."""
    scales = _scales(data)
    points, chosen = data.points / scales, data.chosen.unsqueeze(-1)

    def loss(tastes: Tensor) -> Tensor:
        return -_log_probabilities(points, data.available, tastes).gather(1, chosen).mean()

    (tastes,) = minimise(loss, points.new_zeros(points.shape[-1]))
    return tastes / scales, -float(loss(tastes)) * len(data)


def conditional_logit(known: Choices, test: Choices) -> Predictions:
    """One linear utility for all."""
    tastes, _ = fit_logit(known)
    return of_outcomes(_log_probabilities(test.points, test.available, tastes).exp(), test.chosen)


def _normal_draws(num_people: int, num_draws: int, dim: int, seed: int = 0) -> Tensor:
    """Standard normal draws, `num_people x num_draws x dim`, each person's of a piece of Sobol's sequence."""
    uniform = SobolEngine(dim, scramble=True, seed=seed).draw(num_people * num_draws, dtype=torch.float64)
    return torch.special.ndtri(uniform.clamp(1e-10, 1 - 1e-10)).reshape(num_people, num_draws, dim)


class MixedLogit:
    """Tastes `w_j ~ N(mean, L L^T)` of people, by simulated maximum likelihood.

    Args:
        data: The choices to learn from.
        num_draws: Draws for each person.
    """

    def __init__(self, data: Choices, num_draws: int = TRAINING_DRAWS) -> None:
        self.data, self.scales = data, _scales(data)
        start, _ = fit_logit(data)
        dim, people = len(start), data.person.unique(return_inverse=True)[1]
        points, chosen = data.points / self.scales, data.chosen
        draws = _normal_draws(int(people.max()) + 1, num_draws, dim)
        rows, columns = torch.tril_indices(dim, dim)
        difference = points - points.gather(1, chosen[:, None, None].expand(-1, 1, dim))  # from the chosen option

        def root(entries: Tensor) -> Tensor:
            return entries.new_zeros(dim, dim).index_put((rows, columns), entries)

        def loss(mean: Tensor, entries: Tensor) -> Tensor:
            tastes = mean + draws @ root(entries).mT
            utility = (difference @ tastes.mT[people]).masked_fill(~data.available.unsqueeze(-1), -torch.inf)
            joint = draws.new_zeros(draws.shape[:2]).index_add(0, people, -utility.logsumexp(1))
            return -(joint.logsumexp(-1) - np.log(num_draws)).sum() / len(data)

        mean = start * self.scales
        entries = torch.where(rows == columns, 0.5 * mean.abs().mean().clamp(0.2, 1.0), 0.0)
        self.mean, entries = minimise(loss, mean, entries.double())
        self.root, self.log_likelihood = root(entries), -float(loss(self.mean, entries)) * len(data)

    def predict(self, test: Choices, num_draws: int = TEST_DRAWS) -> Tensor:
        """Probabilities of the options; those of people whose choices are known are given these."""
        draws = _normal_draws(1, num_draws, len(self.mean), seed=1)[0]
        tastes = (self.mean + draws @ self.root.mT) / self.scales
        probabilities = torch.empty_like(test.points[..., 0])
        for person in test.person.unique():
            mine, theirs = self.data.take(self.data.person == person), test.person == person
            logs = _log_probabilities(mine.points, mine.available, tastes.mT)  # n x k x draws
            weights = logs.gather(1, mine.chosen[:, None, None].expand(-1, 1, num_draws)).sum((0, 1)).softmax(-1)
            one = test.take(theirs)
            probabilities[theirs] = _log_probabilities(one.points, one.available, tastes.mT).exp() @ weights
        return probabilities


def mixed_logit(known: Choices, test: Choices) -> Predictions:
    """Each person's own tastes, with a full covariance."""
    return of_outcomes(MixedLogit(known).predict(test), test.chosen)


def boosted_choices(known: Choices, test: Choices) -> Predictions:
    """Gradient boosting on all options' attributes; where their order has no meaning, averaged over its rotations."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    num_options = known.points.shape[1]
    rotations = [0] if known.labelled else list(range(num_options))

    def inputs(data: Choices, turn: int) -> np.ndarray:
        points = torch.where(data.available.unsqueeze(-1), data.points, torch.nan).roll(turn, 1)
        return points.flatten(1).numpy()

    X = np.concatenate([inputs(known, turn) for turn in rotations])
    y = np.concatenate([((known.chosen + turn) % num_options).numpy() for turn in rotations])
    model = HistGradientBoostingClassifier(
        learning_rate=0.05, max_iter=150, max_leaf_nodes=8, l2_regularization=1.0, random_state=0
    ).fit(X, y)
    probabilities = torch.zeros_like(test.points[..., 0])
    for turn in rotations:
        found = torch.full_like(probabilities, 1e-6)
        found[:, model.classes_] = torch.tensor(model.predict_proba(inputs(test, turn)))
        probabilities += found.roll(-turn, 1) / len(rotations)
    probabilities = probabilities.clamp_min(1e-6) * test.available
    return of_outcomes(probabilities / probabilities.sum(-1, keepdim=True), test.chosen)


# Grades


def cumulative_link(known: Grades, test: Grades) -> Predictions:
    """The proportional odds model of statsmodels; logistic regression where there are two grades."""
    import statsmodels.api as sm
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    X, Z = known.points.numpy(), test.points.numpy()
    if known.num_grades == 2:
        fitted = sm.Logit(known.grades.numpy(), sm.add_constant(X)).fit(disp=False)
        yes = torch.tensor(fitted.predict(sm.add_constant(Z, has_constant="add")))
        return of_outcomes(torch.stack([1 - yes, yes], dim=-1), test.grades)
    fitted = OrderedModel(known.grades.numpy(), X, distr="logit").fit(method="bfgs", disp=False, maxiter=500)
    found = torch.tensor(np.asarray(fitted.predict(exog=Z)))
    probabilities = found.new_full((len(test), known.num_grades), 1e-6)
    probabilities[:, known.grades.unique()] = found  # it knows the grades alone that it has seen
    return of_outcomes(probabilities / probabilities.sum(-1, keepdim=True), test.grades)


class MixedCumulativeLink:
    """A proportional odds model in which people have levels, and effects of the first inputs, of their own.

    Args:
        data: The grades to learn from.
        slopes: The number of leading inputs whose effects differ between people.
        num_draws: Draws for each person.
    """

    def __init__(self, data: Grades, slopes: int = 0, num_draws: int = TRAINING_DRAWS) -> None:
        self.data, self.slopes = data, slopes
        people = data.person.unique(return_inverse=True)[1]
        dim = 1 + slopes
        draws = _normal_draws(int(people.max()) + 1, num_draws, dim)
        rows, columns = torch.tril_indices(dim, dim)

        def root(entries: Tensor) -> Tensor:
            return entries.new_zeros(dim, dim).index_put((rows, columns), entries)

        def joint(cuts: Tensor, effects: Tensor, entries: Tensor) -> Tensor:
            own = (draws @ root(entries).mT)[people]
            log_p = self._log_probabilities(data, cuts, effects, own).gather(
                -1, data.grades[:, None, None].expand(-1, num_draws, 1)
            )
            return draws.new_zeros(draws.shape[:2]).index_add(0, people, log_p.squeeze(-1))

        def loss(*parameters: Tensor) -> Tensor:
            return -(joint(*parameters).logsumexp(-1) - np.log(num_draws)).sum() / len(data)

        shares = torch.bincount(data.grades, minlength=data.num_grades).double() + 0.5
        start = (shares / shares.sum()).cumsum(0)[:-1].logit()
        cuts = torch.cat([start[:1], start.diff().log()])
        entries = torch.where(rows == columns, 0.5, 0.0).double()
        found = minimise(loss, cuts, cuts.new_zeros(data.points.shape[-1]), entries)
        self.cuts, self.effects, self.root = found[0], found[1], root(found[2])
        self.log_likelihood = -float(loss(*found)) * len(data)

    def _log_probabilities(self, data: Grades, cuts: Tensor, effects: Tensor, own: Tensor) -> Tensor:
        """Of all grades, `m x draws x grades`, under what people have of their own, `m x draws x (1 + slopes)`."""
        ends = torch.cat([cuts[:1], cuts[:1] + cuts[1:].exp().cumsum(0)])
        design = torch.cat([torch.ones_like(data.points[:, :1]), data.points[:, : self.slopes]], dim=-1)
        level = (data.points @ effects).unsqueeze(-1) + (own @ design.unsqueeze(-1)).squeeze(-1)
        below = (ends - level.unsqueeze(-1)).sigmoid()
        edges = torch.cat([torch.zeros_like(below[..., :1]), below, torch.ones_like(below[..., :1])], dim=-1)
        return edges.diff().clamp_min(1e-300).log()

    def predict(self, test: Grades, num_draws: int = TEST_DRAWS) -> Tensor:
        """Probabilities of all grades; those of people whose grades are known are given these."""
        own = _normal_draws(1, num_draws, 1 + self.slopes, seed=1)[0] @ self.root.mT
        probabilities = test.points.new_empty(len(test), test.num_grades)
        for person in test.person.unique():
            mine, theirs = self.data.take(self.data.person == person), test.person == person
            logs = self._log_probabilities(mine, self.cuts, self.effects, own.expand(len(mine), -1, -1))
            seen = logs.gather(-1, mine.grades[:, None, None].expand(-1, num_draws, 1)).sum((0, -1))
            one = test.take(theirs)
            each = self._log_probabilities(one, self.cuts, self.effects, own.expand(len(one), -1, -1)).exp()
            probabilities[theirs] = torch.einsum("mrg,r->mg", each, seen.softmax(-1))
        return probabilities


def cumulative_link_people(known: Grades, test: Grades) -> Predictions:
    """Cumulative link with a level of each person."""
    return of_outcomes(MixedCumulativeLink(known).predict(test), test.grades)


def cumulative_link_slopes(known: Grades, test: Grades) -> Predictions:
    """Cumulative link with a level and effects of each person."""
    return of_outcomes(MixedCumulativeLink(known, known.slopes).predict(test), test.grades)


class GradedResponse:
    """A graded response model: abilities of people, loadings and cut-points of items, by simulated maximum likelihood.

    Loadings have normal priors of standard deviation 2, cut-points of 4.

    Args:
        data: The answers to learn from.
        num_factors: The number of abilities.
        num_draws: Draws for each person.
    """

    def __init__(self, data: Grades, num_factors: int = 5, num_draws: int = TRAINING_DRAWS) -> None:
        assert data.item is not None
        self.data, num_items = data, data.points.shape[-1]
        people = data.person.unique(return_inverse=True)[1]
        num_people = int(people.max()) + 1
        draws = _normal_draws(num_people, num_draws, num_factors)
        rows, columns = torch.tril_indices(num_items, num_factors)
        generator = torch.Generator().manual_seed(0)

        def loadings(entries: Tensor) -> Tensor:
            return entries.new_zeros(num_items, num_factors).index_put((rows, columns), entries)

        def loss(cuts: Tensor, entries: Tensor) -> Tensor:
            level = (draws[people] * loadings(entries)[data.item].unsqueeze(1)).sum(-1)
            seen = self._log_probabilities(cuts[data.item], level).gather(
                -1, data.grades[:, None, None].expand(-1, num_draws, 1)
            )
            joint = draws.new_zeros(num_people, num_draws).index_add(0, people, seen.squeeze(-1))
            ends = torch.cat([cuts[:, :1], cuts[:, :1] + cuts[:, 1:].exp().cumsum(-1)], dim=-1)
            prior = (entries / 2).square().sum() / 2 + (ends / 4).square().sum() / 2
            return (prior - (joint.logsumexp(-1) - np.log(num_draws)).sum()) / len(data)

        shares = torch.bincount(data.grades, minlength=data.num_grades).double() + 0.5
        start = (shares / shares.sum()).cumsum(0)[:-1].logit()
        cuts = torch.cat([start[:1], start.diff().log()]).expand(num_items, -1)
        entries = 0.5 * torch.randn(len(rows), generator=generator, dtype=torch.float64)
        self.cuts, entries = minimise(loss, cuts, entries, max_iter=200)
        self.loadings = loadings(entries)

    def _log_probabilities(self, cuts: Tensor, level: Tensor) -> Tensor:
        """Of all grades, `m x draws x grades`, for cut-points `m x c` and levels `m x draws`."""
        ends = torch.cat([cuts[:, :1], cuts[:, :1] + cuts[:, 1:].exp().cumsum(-1)], dim=-1)
        below = (ends.unsqueeze(1) - level.unsqueeze(-1)).sigmoid()
        edges = torch.cat([torch.zeros_like(below[..., :1]), below, torch.ones_like(below[..., :1])], dim=-1)
        return edges.diff().clamp_min(1e-300).log()

    def predict(self, test: Grades, num_draws: int = TEST_DRAWS) -> Tensor:
        """Probabilities of all grades; those of people whose answers are known are given these."""
        draws = _normal_draws(1, num_draws, self.loadings.shape[-1], seed=1)[0]
        levels = self.loadings @ draws.mT  # items x draws
        probabilities = test.points.new_empty(len(test), test.num_grades)
        for person in test.person.unique():
            mine, theirs = self.data.take(self.data.person == person), test.person == person
            logs = self._log_probabilities(self.cuts[mine.item], levels[mine.item])
            seen = logs.gather(-1, mine.grades[:, None, None].expand(-1, num_draws, 1)).sum((0, -1))
            one = test.take(theirs)
            each = self._log_probabilities(self.cuts[one.item], levels[one.item]).exp()
            probabilities[theirs] = torch.einsum("mrg,r->mg", each, seen.softmax(-1))
        return probabilities


def graded_response(known: Grades, test: Grades) -> Predictions:
    """Five abilities of each person."""
    return of_outcomes(GradedResponse(known).predict(test), test.grades)


def boosted_grades(known: Grades, test: Grades) -> Predictions:
    """Gradient boosting of classes."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        learning_rate=0.05, max_iter=100, max_leaf_nodes=8, l2_regularization=1.0, random_state=0
    ).fit(known.points.numpy(), known.grades.numpy())
    probabilities = test.points.new_full((len(test), known.num_grades), 1e-6)
    probabilities[:, model.classes_] = torch.tensor(model.predict_proba(test.points.numpy()))
    return of_outcomes(probabilities / probabilities.sum(-1, keepdim=True), test.grades)


def psytrack(known: Grades, test: Grades) -> Predictions:
    """Logistic regression whose weights walk from trial to trial, by the package psytrack.

    As in its own cross-validation, a held-out trial has the weights of the last trial before it. The last input is the
    time of a trial, in which the weights walk.
    """
    from psytrack import hyperOpt
    from psytrack.helper.helperFunctions import read_input

    known = known.take(known.points[:, -1].argsort())
    trial, asked = ((data.points[:, -1] * (len(rat()) - 1)).round().long() for data in (known, test))
    names = [f"input {i}" for i in range(known.points.shape[-1] - 1)]

    def data_of(grades: Grades) -> dict[str, Any]:
        inputs = {name: grades.points[:, i : i + 1].numpy() for i, name in enumerate(names)}
        return {"y": grades.grades.numpy() + 1, "inputs": inputs}

    missing = torch.cat([trial.new_zeros(1), trial.diff() - 1]).double().numpy()
    weights = dict.fromkeys(["bias", *names], 1)
    hyper = {"sigInit": 2.0**4, "sigma": [2.0**-4] * len(weights), "sigDay": None}
    found = hyperOpt(data_of(known) | {"missing_trials": missing}, hyper, weights, ["sigma"], hess_calc=None)[2]
    last = (torch.searchsorted(trial, asked) - 1).clamp_min(0)
    yes = torch.from_numpy((read_input(data_of(test), weights) * found[:, last.numpy()].T).sum(-1)).sigmoid()
    return of_outcomes(torch.stack([1 - yes, yes], dim=-1), test.grades)


# Readings


def log_density_of_readings(mean: Tensor, deviation: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Of a normal distribution: the density where a number was read, the probability of the bounds elsewhere."""
    read = lower == upper
    z = (torch.where(read, lower, 0.0) - mean) / deviation
    density = -0.5 * z.square() - deviation.log() - 0.5 * np.log(2 * np.pi)
    bounded_below, bounded_above = lower.isfinite() & ~read, upper.isfinite() & ~read
    below = torch.where(bounded_below, (torch.where(bounded_below, lower, 0.0) - mean) / deviation, -FAR)
    above = torch.where(bounded_above, (torch.where(bounded_above, upper, 0.0) - mean) / deviation, FAR)
    flip = below > 0  # the tails of the normal are exact on the left alone
    a, b = torch.where(flip, -above, below), torch.where(flip, -below, above)
    high, low = torch.special.log_ndtr(b), torch.special.log_ndtr(a)
    return torch.where(read, density, high + torch.log1p(-(low - high).clamp_max(-1e-12).exp()))


def fit_normal_regression(data: Readings) -> tuple[Tensor, Tensor, Tensor, float]:
    """Coefficients, the constant, the standard deviation, and the log likelihood: tobit and its relatives."""
    centre, scales = data.points.mean(0), data.points.std(0)
    X = (data.points - centre) / scales
    ends = torch.cat([data.lower, data.upper])
    ends = ends[ends.isfinite()]

    def loss(effects: Tensor, constant: Tensor, log_deviation: Tensor) -> Tensor:
        mean = X @ effects + constant
        return -log_density_of_readings(mean, log_deviation.exp(), data.lower, data.upper).mean()

    found = minimise(loss, X.new_zeros(X.shape[-1]), ends.mean(), ends.std().log())
    effects = found[0] / scales
    return effects, found[1] - centre @ effects, found[2].exp(), -float(loss(*found)) * len(data)


def normal_regression(known: Readings, test: Readings) -> Predictions:
    """A linear model with normal noise; of bounds what they are."""
    effects, constant, deviation, _ = fit_normal_regression(known)
    mean = test.points @ effects + constant
    return Predictions(log_density_of_readings(mean, deviation, test.lower, test.upper))


RIVALS: dict[type, dict[str, Callable[..., Predictions]]] = {
    Choices: {"conditional logit": conditional_logit, "mixed logit": mixed_logit, "boosting": boosted_choices},
    Grades: {
        "cumulative link": cumulative_link,
        "cumulative link, people": cumulative_link_people,
        "cumulative link, people's slopes": cumulative_link_slopes,
        "graded response, five factors": graded_response,
        "boosting": boosted_grades,
    },
    Readings: {"normal regression": normal_regression},
}
