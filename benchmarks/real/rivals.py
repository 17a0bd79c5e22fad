"""The fields' standard models, in a few lines each: maximum likelihood by L-BFGS in double precision.

Models of people draw their tastes `w_j ~ N(mean, L L^T)` by Sobol's sequence: the likelihood of a person's answers is
an average over the draws, and a known person's prediction weights them by it ([Train2009discrete]_, chapters 10, 11).

.. [Train2009discrete] K. Train. Discrete choice methods with simulation. 2nd edition. Cambridge University Press, 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks.real.data import Choices, Grades, Readings, rat

TRAINING_DRAWS, TEST_DRAWS = 256, 2048
FAR = 40.0  # standard deviations, in place of infinity: its gradient is finite


class Predictions(NamedTuple):
    """Log densities of what was answered, and `m x k` probabilities of outcomes."""

    log_density: Tensor
    probabilities: Tensor | None = None  # none for readings


def of_outcomes(probabilities: Tensor, test: Choices | Grades) -> Predictions:
    """Predictions from probabilities of all outcomes, `m x k`; of two from the second's, `m`."""
    if probabilities.ndim == 1:
        probabilities = torch.stack([1 - probabilities, probabilities], dim=-1)
    return Predictions(probabilities.gather(-1, test.answer.unsqueeze(-1)).squeeze(-1).log(), probabilities)


def _floored(probabilities: Tensor, test: Choices | Grades) -> Predictions:
    """Predictions from what may sum to more than one."""
    return of_outcomes(probabilities / probabilities.sum(-1, keepdim=True), test)


def minimise(objective: Callable[..., Tensor], *start: Tensor, max_iter: int = 500) -> list[Tensor]:
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


# People


def _normal_draws(num_people: int, num_draws: int, dim: int, seed: int = 0) -> Tensor:
    """Standard normal draws, `num_people x num_draws x dim`, each person's of a piece of Sobol's sequence."""
    uniform = SobolEngine(dim, scramble=True, seed=seed).draw(num_people * num_draws, dtype=torch.float64)
    return torch.special.ndtri(uniform.clamp(1e-10, 1 - 1e-10)).reshape(num_people, num_draws, dim)


class OfPeople:
    """Maximum likelihood by standard normal draws of what people have of their own, `people x draws x dim`.

    `log_probabilities(data, draws, people, *parameters)` of all outcomes are `m x draws x k`.
    """

    def __init__(
        self, data: Any, dim: int, log_probabilities: Callable[..., Tensor], start: Sequence[Tensor],
        penalty: Callable[..., Tensor | float] = lambda *_: 0.0, num_draws: int = TRAINING_DRAWS, max_iter: int = 500,
    ) -> None:  # fmt: skip
        self.data, self.dim, self.log_probabilities = data, dim, log_probabilities
        people = data.person.unique(return_inverse=True)[1]
        draws = _normal_draws(int(people.max()) + 1, num_draws, dim)

        def loss(*parameters: Tensor) -> Tensor:
            joint = draws.new_zeros(draws.shape[:2]).index_add(0, people, self._seen(data, draws, people, *parameters))
            return (penalty(*parameters) - (joint.logsumexp(-1) - np.log(num_draws)).sum()) / len(data)

        self.parameters = minimise(loss, *start, max_iter=max_iter)
        self.log_likelihood = -float(loss(*self.parameters)) * len(data)

    def _seen(self, data: Any, draws: Tensor, people: Tensor, *parameters: Tensor) -> Tensor:
        logs = self.log_probabilities(data, draws, people, *parameters)
        return logs.gather(-1, data.answer[:, None, None].expand(-1, logs.shape[1], 1)).squeeze(-1)

    def predict(self, test: Any, num_draws: int = TEST_DRAWS) -> Predictions:
        """Probabilities of all outcomes; those of people whose answers are known are given these."""
        draws, found = _normal_draws(1, num_draws, self.dim, seed=1), []
        order = test.person.argsort(stable=True)
        for person in test.person.unique():
            mine, one = (data.take(data.person == person) for data in (self.data, test))
            seen = self._seen(mine, draws, torch.zeros_like(mine.person), *self.parameters).sum(0)
            each = self.log_probabilities(one, draws, torch.zeros_like(one.person), *self.parameters).exp()
            found.append(torch.einsum("mrk,r->mk", each, seen.softmax(-1)))
        return of_outcomes(torch.cat(found)[order.argsort()], test)


# Choices


def spreads(data: Choices) -> Tensor:
    """The spread of each attribute among the options that were available."""
    mask = data.available.unsqueeze(-1)
    centre = (data.points * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)
    squares = ((data.points - centre).square() * mask).sum((0, 1)) / mask.sum()
    return squares.sqrt().clamp_min(1e-8)


def _logit(utility: Tensor, available: Tensor) -> Tensor:
    return utility.masked_fill(~available, -torch.inf).log_softmax(-1)


def fit_logit(data: Choices) -> tuple[Tensor, float]:
    """The conditional logit's coefficients, and the log likelihood that they reach."""
    scales = spreads(data)
    points, chosen = data.points / scales, data.answer.unsqueeze(-1)

    def loss(tastes: Tensor) -> Tensor:
        return -_logit(points @ tastes, data.available).gather(1, chosen).mean()

    (tastes,) = minimise(loss, points.new_zeros(points.shape[-1]))
    return tastes / scales, -float(loss(tastes)) * len(data)


def conditional_logit(known: Choices, test: Choices) -> Predictions:
    """One linear utility for all."""
    tastes, _ = fit_logit(known)
    return of_outcomes(_logit(test.points @ tastes, test.available).exp(), test)


def fit_mixed_logit(data: Choices) -> OfPeople:
    """Tastes `w_j ~ N(mean, L L^T)` of people; parameters are the mean and `L`, in units of the attributes' spreads."""
    scales = spreads(data)
    mean = fit_logit(data)[0] * scales
    root = 0.5 * mean.abs().mean().clamp(0.2, 1.0) * torch.eye(len(mean)).double()

    def log_probabilities(data: Choices, draws: Tensor, people: Tensor, mean: Tensor, root: Tensor) -> Tensor:
        tastes = (mean + draws @ root.tril().mT) / scales
        return _logit(tastes[people] @ data.points.mT, data.available.unsqueeze(1))

    return OfPeople(data, len(mean), log_probabilities, (mean, root))


# Grades


def cumulative_link(known: Grades, test: Grades) -> Predictions:
    """The proportional odds model of statsmodels; logistic regression where there are two grades."""
    import statsmodels.api as sm
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    X, Z = known.points.numpy(), test.points.numpy()
    if known.num_outcomes == 2:
        fitted = sm.Logit(known.answer.numpy(), sm.add_constant(X)).fit(disp=False)
        return of_outcomes(torch.tensor(fitted.predict(sm.add_constant(Z, has_constant="add"))), test)
    fitted = OrderedModel(known.answer.numpy(), X, distr="logit").fit(method="bfgs", disp=False, maxiter=500)
    found = torch.tensor(np.asarray(fitted.predict(exog=Z)))
    probabilities = found.new_full((len(test), known.num_outcomes), 1e-6)
    probabilities[:, known.answer.unique()] = found  # it knows the grades alone that it has seen
    return _floored(probabilities, test)


def _first_cuts(data: Grades) -> Tensor:
    """The first cut-point, and the logarithms of steps to the others, for the shares of the grades."""
    shares = torch.bincount(data.answer, minlength=data.num_outcomes).double() + 0.5
    ends = (shares / shares.sum()).cumsum(0)[:-1].logit()
    return torch.cat([ends[:1], ends.diff().log()])


def _ends(cuts: Tensor) -> Tensor:
    return torch.cat([cuts[..., :1], cuts[..., :1] + cuts[..., 1:].exp().cumsum(-1)], dim=-1)


def _log_grades(cuts: Tensor, level: Tensor) -> Tensor:
    """Of all grades, `m x draws x grades`, for cut-points `... x c` and levels `m x draws`."""
    below = (_ends(cuts) - level.unsqueeze(-1)).sigmoid()
    edges = torch.cat([torch.zeros_like(below[..., :1]), below, torch.ones_like(below[..., :1])], dim=-1)
    return edges.diff().clamp_min(1e-300).log()


def fit_mixed_cumulative_link(data: Grades, slopes: int = 0, num_draws: int = TRAINING_DRAWS) -> OfPeople:
    """Proportional odds with levels, and effects of the first inputs, of people's own, whose `L` comes last."""

    def log_probabilities(
        data: Grades, draws: Tensor, people: Tensor, cuts: Tensor, effects: Tensor, root: Tensor
    ) -> Tensor:
        own = (draws @ root.tril().mT)[people]
        design = torch.cat([torch.ones_like(data.points[:, :1]), data.points[:, :slopes]], dim=-1)
        return _log_grades(cuts, (data.points @ effects).unsqueeze(-1) + (own @ design.unsqueeze(-1)).squeeze(-1))

    start = _first_cuts(data), data.points.new_zeros(data.points.shape[-1]), 0.5 * torch.eye(1 + slopes).double()
    return OfPeople(data, 1 + slopes, log_probabilities, start, num_draws=num_draws)


def fit_stretched_cumulative_link(data: Grades, num_draws: int = TRAINING_DRAWS) -> OfPeople:
    """Proportional odds with people's own levels and stretches of cut-points around the middle one, independent."""
    middle = (data.num_outcomes - 2) // 2

    def log_probabilities(
        data: Grades, draws: Tensor, people: Tensor, cuts: Tensor, effects: Tensor, scales: Tensor
    ) -> Tensor:
        level, log_stretch = (scales * draws[people]).unbind(-1)
        ends = _ends(cuts)
        level = level + (data.points @ effects).unsqueeze(-1) - ends[middle]
        below = (log_stretch.exp().unsqueeze(-1) * (ends - ends[middle]) - level.unsqueeze(-1)).sigmoid()
        edges = torch.cat([torch.zeros_like(below[..., :1]), below, torch.ones_like(below[..., :1])], dim=-1)
        return edges.diff().clamp_min(1e-300).log()

    start = _first_cuts(data), data.points.new_zeros(data.points.shape[-1]), torch.tensor([0.5, 0.3]).double()
    return OfPeople(data, 2, log_probabilities, start, num_draws=num_draws)


def mixed_cumulative_link(known: Grades, test: Grades, slopes: bool = False) -> Predictions:
    """Levels, and perhaps effects, of people's own."""
    return fit_mixed_cumulative_link(known, known.slopes if slopes else 0).predict(test)


def fit_graded_response(data: Grades, num_factors: int = 5) -> OfPeople:
    """Abilities of people, cut-points and loadings of items; priors of both are normal, of deviations 4 and 2."""
    generator = torch.Generator().manual_seed(0)
    num_items = data.points.shape[-1]
    rows, columns = torch.tril_indices(num_items, num_factors)

    def penalty(cuts: Tensor, entries: Tensor) -> Tensor:
        return (entries / 2).square().sum() / 2 + (_ends(cuts) / 4).square().sum() / 2

    def log_probabilities(data: Grades, draws: Tensor, people: Tensor, cuts: Tensor, entries: Tensor) -> Tensor:
        loadings = entries.new_zeros(num_items, num_factors).index_put((rows, columns), entries)
        level = (draws[people] * loadings[data.item].unsqueeze(1)).sum(-1)
        return _log_grades(cuts[data.item].unsqueeze(1), level)

    start = (
        _first_cuts(data).expand(num_items, -1),
        0.5 * torch.randn(len(rows), generator=generator, dtype=torch.float64),
    )
    return OfPeople(data, num_factors, log_probabilities, start, penalty, max_iter=200)


def psytrack(known: Grades, test: Grades) -> Predictions:
    """Logistic regression whose weights walk in the last input, time; a held-out trial has those of the last before."""
    from psytrack import hyperOpt
    from psytrack.helper.helperFunctions import read_input

    known = known.take(known.points[:, -1].argsort())
    trial, asked = ((data.points[:, -1] * (len(rat()) - 1)).round().long() for data in (known, test))
    names = [f"input {i}" for i in range(known.points.shape[-1] - 1)]

    def data_of(grades: Grades) -> dict[str, Any]:
        inputs = {name: grades.points[:, i : i + 1].numpy() for i, name in enumerate(names)}
        return {"y": grades.answer.numpy() + 1, "inputs": inputs}

    missing = torch.cat([trial.new_zeros(1), trial.diff() - 1]).double().numpy()
    weights = dict.fromkeys(["bias", *names], 1)
    hyper = {"sigInit": 2.0**4, "sigma": [2.0**-4] * len(weights), "sigDay": None}
    found = hyperOpt(data_of(known) | {"missing_trials": missing}, hyper, weights, ["sigma"], hess_calc=None)[2]
    last = (torch.searchsorted(trial, asked) - 1).clamp_min(0)
    yes = torch.from_numpy((read_input(data_of(test), weights) * found[:, last.numpy()].T).sum(-1)).sigmoid()
    return of_outcomes(yes, test)


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


# All outcomes


def boosting(known: Choices | Grades, test: Choices | Grades) -> Predictions:
    """Gradient boosting on all options' attributes, averaged over rotations where their order has no meaning."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    of_choices, k = isinstance(known, Choices), known.num_outcomes
    turns = range(k) if isinstance(known, Choices) and not known.labelled else range(1)

    def inputs(data: Choices | Grades, turn: int) -> np.ndarray:
        if isinstance(data, Grades):
            return data.points.numpy()
        points = torch.where(data.available.unsqueeze(-1), data.points, torch.nan).roll(turn, 1)
        return points.flatten(1).numpy()

    X = np.concatenate([inputs(known, turn) for turn in turns])
    y = np.concatenate([((known.answer + turn) % k).numpy() for turn in turns])
    model = HistGradientBoostingClassifier(
        learning_rate=0.05, max_iter=150 if of_choices else 100, max_leaf_nodes=8, l2_regularization=1.0, random_state=0
    ).fit(X, y)
    probabilities = test.points.new_zeros(len(test), k)
    for turn in turns:
        found = torch.full_like(probabilities, 1e-6)
        found[:, model.classes_] = torch.tensor(model.predict_proba(inputs(test, turn)))
        probabilities += found.roll(-turn, 1) / len(turns)
    if isinstance(test, Choices):
        probabilities = probabilities.clamp_min(1e-6) * test.available
    return _floored(probabilities, test)
