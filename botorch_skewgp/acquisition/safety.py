r"""Safe search: the best experiment of those that a model is sure enough to be safe, and how sure it is of each.

An experiment is safe if it works with at least a given probability, the level. The level is about the risk of a
*setting*, the confidence about how sure the model is of it: `P(P(works at x) >= level) >= confidence`. Starts and ends
of a search are safe, or known to be safe from the beginning ([Sui2015safe]_).

.. [Sui2015safe] Y. Sui, A. Gotovos, J. Burdick, A. Krause. Safe exploration for optimization with Gaussian processes.
    ICML 2015.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.exceptions.errors import CandidateGenerationError, InfeasibilityError, InputDataError, UnsupportedError
from botorch.exceptions.warnings import OptimizationWarning
from botorch.generation.gen import gen_candidates_scipy
from botorch.models.model import Model
from botorch.optim import optimize_acqf, optimize_acqf_discrete
from botorch.optim.initializers import gen_batch_initial_conditions
from botorch.optim.parameter_constraints import evaluate_feasibility
from botorch.utils.sampling import draw_sobol_samples, get_polytope_samples
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor
from torch.nn import Module

from botorch_skewgp.acquisition.components import follow
from botorch_skewgp.acquisition.mixed_search import MAX_POINTS, MixedDomain
from botorch_skewgp.acquisition.search_domain import SearchDomain, Values, as_points, checked_fixed
from botorch_skewgp.acquisition.search_options import CONSTRAINTS, INFEASIBLE, LINEAR, with_columns
from botorch_skewgp.acquisition.validity import log_average_of_members, validity_functions, warn_of_few_outcomes
from botorch_skewgp.checks import as_count, as_probability, check_class
from botorch_skewgp.exceptions import NoSafePointError

Others = list[tuple[Callable[[Tensor], Tensor], bool]]  # non-linear constraints, on single points
LEVEL, CONFIDENCE = 0.9, 0.95
MAX_COMBINATIONS = 64  # of listed values, each of which is searched by itself
BACKWARDS = (0.0, 1e-6, 1e-4, 1e-2)  # shares of its way by which the end of a search may be outside by rounding
NUM_CLIMBS, MAX_STEPS = 4, 50  # of the surest raw points, which climb the confidence if none is safe


def log_probability_of_safety(model: Model, X: Tensor, level: float, log_odds: bool = False) -> Tensor:
    r"""The log probabilities that experiments at `batch_shape x q x d` points are safe, or `log(p / (1 - p))`.

    `P(works | f)` is monotone in the latent function `f`, so that an experiment is safe where `f` is beyond a number
    `c`: `sum_s p_s Phi((m_s(x) - c) / sqrt(v(x)))`, without the noise of outcomes.
    """
    margins = []
    for member, function in validity_functions(model):
        posterior = member.latent_posterior(X)
        cut = function.latent_level(level)
        margin = (posterior.component_means - cut) / posterior.gaussian_variance.sqrt().unsqueeze(-1)
        margins.append((function.sign * margin, posterior.log_probabilities))
    return log_average_of_members(margins, log_odds)


@torch.no_grad()
def probability_of_safety(model: Model, X: Tensor | None = None, level: float = LEVEL) -> Tensor:
    r"""The probability that each point is safe: that an experiment there works with probability `level` or more.

    Example:
        >>> model = SkewGP(train_X, Validity(worked), ValidityLikelihood(noise=1.0))
        >>> sure = probability_of_safety(model, train_X, level=0.9)

    Args:
        model: As for `LogProbabilityOfValidity`; an ensemble averages over its members.
        X: An `n x d` tensor of points; the model's own points if `None`.
        level: The probability of working, in (0, 1).

    Returns:
        An `n`-dim tensor.

    Raises:
        InputDataError: If the points are not finite and `n x d`, or no experiment works with that probability.
        UnsupportedError: If the likelihood takes neither `Validity` nor `Binary` observations.
    """
    own = validity_functions(model)[0][0].datapoints
    X = own if X is None else as_points(X, own, "X")
    return log_probability_of_safety(model, X.unsqueeze(-2), as_probability(level, "level")).exp().squeeze(-1)


class LogProbabilityOfSafety(AnalyticAcquisitionFunction):
    r"""The logarithm of the probability that an experiment works with probability `level` or more.

    Its maximum is the point to begin a safe search with if none is known.

    Example:
        >>> model = SkewGP(train_X, Validity(worked), ValidityLikelihood(noise=1.0))
        >>> surest, _ = optimize_acqf(LogProbabilityOfSafety(model), bounds, q=1, num_restarts=4, raw_samples=64)

    Arguments and errors are those of `probability_of_safety`.
    """

    _log = True

    def __init__(self, model: Model, level: float = LEVEL) -> None:
        super().__init__(model=model)
        self.level = checked_level(model, level)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Log probability of safety at `batch_shape x 1 x d` candidates; `batch_shape`."""
        follow(self, X)
        return log_probability_of_safety(self.model, X, self.level).squeeze(-1)


class SafetyInequality(Module):
    r"""`P(P(works at x) >= level) >= confidence`, a non-linear inequality constraint for `optimize_acqf`.

    With few labels give an ensemble whose hyperparameters are sampled (`fit_fully_bayesian_skew_gp`). A
    `FewAnswersWarning` is issued if a single model has fewer than 30 (a `OneClassWarning` if all are of one class):
    fitted hyperparameters claim too much.

    An intra-point constraint, on every point of a batch by itself; `next_safe` searches within it. The difference of
    the log odds changes with the latent function even where probabilities are nearly 0 or 1, as SLSQP needs.

    Example:
        >>> safe = SafetyInequality(SkewGP(train_X, Validity(worked), ValidityLikelihood(noise=1.0)), level=0.9)
        >>> is_safe = safe(train_X) >= 0

    Args:
        model: As for `LogProbabilityOfValidity`.
        level: The least probability with which an experiment is to work.
        confidence: The least probability with which it is to do so.
        safe_points: An `n x d` tensor of points that are known to be safe, whatever the model says of them.

    Raises:
        InputDataError: If a probability is outside (0, 1), points are not finite and `n x d`, or no experiment works
            with probability `level`, as beside slips.
        UnsupportedError: If the likelihood takes neither `Validity` nor `Binary` observations.
    """

    safe_points: Tensor

    def __init__(
        self,
        model: Model,
        level: float = LEVEL,
        confidence: float = CONFIDENCE,
        safe_points: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.confidence = as_probability(confidence, "confidence")
        self.level = checked_level(model, level)
        warn_of_few_outcomes(model)
        own = validity_functions(model)[0][0].datapoints
        self.model = model
        self.register_buffer(
            "safe_points", own[:0] if safe_points is None else as_points(safe_points, own, "safe_points")
        )

    def forward(self, X: Tensor) -> Tensor:
        """The log odds at `... x d` points less those of the confidence, `...`; differentiable. At least 0 at points
        that are known to be safe.
        """
        odds = log_probability_of_safety(self.model, X.unsqueeze(-2), self.level, log_odds=True).squeeze(-1)
        excess = odds - self._least_odds
        is_known = (X.unsqueeze(-2) == self.safe_points.to(X)).all(-1).any(-1)
        return excess + (-excess.detach()).clamp(min=0) * is_known

    @property
    def _least_odds(self) -> float:
        return math.log(self.confidence / (1 - self.confidence))

    def select(self, X: Tensor) -> Tensor:
        """Those of `n x d` points that satisfy the inequality; raises `NoSafePointError` if none does."""
        with torch.no_grad():
            excess = self(X)
        if not (excess >= 0).any():
            raise self.refusal(X, excess)
        return X[excess >= 0]

    def refusal(self, X: Tensor, excess: Tensor) -> NoSafePointError:
        """The error for a search without safe points, from the excess at `n x d` points, perhaps of none."""
        point, confidence, surest = None, 0.0, "no point satisfies the other constraints"
        if len(X):
            point, confidence = X[excess.argmax()], float((excess.max() + self._least_odds).sigmoid())
            shown = [float(f"{value:.6g}") for value in point.tolist()]
            surest = f"the surest point found, {shown}, has a confidence of {confidence:.3g}"
        return NoSafePointError(
            f"No point was found at which the model is sure by {self.confidence} that at least {self.level} of "
            f"experiments work; {surest}. Gather outcomes where experiments work, name safe_points, or lower the "
            "confidence.",
            point,
            confidence,
        )


def frozen(model: Model) -> Model:
    """A model that keeps its posterior while a search asks for it, if it can."""
    return model.frozen() if hasattr(model, "frozen") else model  # type: ignore[operator]


def checked_level(model: Model, level: float) -> float:
    """A level between the limits of every member's probability of working; raises `InputDataError`."""
    level = as_probability(level, "level")
    for _, function in validity_functions(model):
        function.latent_level(level)
    return level


def next_safe(
    acq_function: AcquisitionFunction,
    bounds: Tensor,
    validity: Model,
    level: float = LEVEL,
    confidence: float = CONFIDENCE,
    q: int = 1,
    num_restarts: int = 10,
    raw_samples: int = 256,
    safe_points: Tensor | None = None,
    discrete_dims: Values | None = None,
    cat_dims: Values | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    r"""The best experiment of those that a model is sure enough to be safe, each by itself.

    An experiment is safe if it works with probability `level` or more, and is tried only if the model of `validity` is
    sure of that by `confidence`, or if it is one of `safe_points`. BoTorch's `optimize_acqf` with a `SafetyInequality`,
    which starts and ends of searches satisfy.

    Example:
        >>> model = SkewGP(train_X, Validity(worked), ValidityLikelihood(noise=1.0))
        >>> ensemble = fit_fully_bayesian_skew_gp(fit_skew_gp(model), num_draws=16)
        >>> candidate, value = next_safe(acq, bounds, ensemble, level=0.9, safe_points=train_X[:1])

    Args:
        acq_function: Any acquisition function; with several inputs that have a list of values and `q > 1`, one that
            takes pending points.
        bounds: The bounds, `2 x d`.
        validity: A model of whether experiments work, as for `SafetyInequality`.
        level: The least probability with which an experiment is to work.
        confidence: How sure the model is to be of that.
        q: The number of experiments.
        num_restarts: The number of starts of the search, shared by all combinations of listed values.
        raw_samples: The number of points among which safe starts are looked for, likewise.
        safe_points: An `n x d` tensor of points that are known to be safe: the first ones of a search.
        discrete_dims: Inputs that take one of a list of numbers, as for `next_pair`.
        cat_dims: Inputs that take one of a list of categories.
        options: Other arguments of `optimize_acqf`, such as linear constraints or fixed features.

    Returns:
        The experiments, `q x d`, and their acquisition value.

    Raises:
        InputDataError: If a probability is outside (0, 1), the bounds are not `2 x d`, or an option is set here.
        UnsupportedError: If the likelihood takes neither kind, a constraint is on several points, or lists of values
            have too many combinations.
        NoSafePointError: If no safe point was found; a `CandidateGenerationError` that names the surest one.
    """
    check_class(acq_function, "acq_function", AcquisitionFunction)
    check_class(validity, "validity", Model)
    safe = SafetyInequality(frozen(validity), level, confidence, safe_points)
    options |= {"num_restarts": num_restarts, "raw_samples": raw_samples}
    return search_safely(acq_function, bounds, safe, as_count(q, "q", least=1), discrete_dims, cat_dims, **options)


def search_safely(
    acq_function: AcquisitionFunction,
    bounds: Tensor,
    safe: SafetyInequality,
    q: int = 1,
    discrete_dims: Values | None = None,
    cat_dims: Values | None = None,
    starts: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    """As `next_safe`, within an inequality; safe ones of further points, `n x d`, are starts too."""
    own = sorted({"batch_initial_conditions", "gen_candidates", "ic_generator"} & options.keys())
    if own:
        raise InputDataError(f"A safe search finds starts and candidates that are safe; leave {', '.join(own)} out.")
    seen = validity_functions(safe.model)[0][0].datapoints
    domain = SearchDomain.build(safe.model, bounds, seen, discrete_dims, cat_dims)
    options = with_columns(options, domain.bounds)
    others = list(options.pop("nonlinear_inequality_constraints", None) or [])
    if not all(is_of_points for _, is_of_points in others):
        raise UnsupportedError("A search that is to be safe takes non-linear constraints on single points only.")
    values = {factor.columns[0]: factor.values[:, 0] for factor in domain.box.factors}
    fixed = checked_fixed(options.pop("fixed_features", None), domain.bounds, values)
    box = domain.box.with_fixed(fixed)
    if box.num_points <= MAX_POINTS:
        X = box.all_points()
        linear: dict[str, Any] = {name: options.get(name) for name in LINEAR}
        X = X[evaluate_feasibility(X.unsqueeze(-2), nonlinear_inequality_constraints=others or None, **linear)]
        found, _ = optimize_acqf_discrete(acq_function, q, choices=safe.select(X), unique=False)
        return found, _value(acq_function, found)
    choices = _combinations(box, fixed)
    for name in ("num_restarts", "raw_samples"):
        options[name] = -(-as_count(options[name], name, least=1) // len(choices))
    seen = seen if starts is None else torch.cat([seen, starts.to(seen)])
    search = partial(
        optimize_acqf,
        acq_function,
        domain.bounds,
        nonlinear_inequality_constraints=[*others, (safe, True)],
        ic_generator=partial(safe_initial_conditions, safe, others, domain.box.rounded(seen)),
        gen_candidates=gen_valid_candidates,  # type: ignore[arg-type]  # BoTorch's own is none either
        **{"retry_on_optimization_warning": False, **options},
    )
    if len(choices) == 1 or q == 1:
        return _best_of(search, choices, q)
    pending, found = getattr(acq_function, "X_pending", None), domain.bounds[:0]
    try:
        for _ in range(q):
            found = torch.cat([found, _best_of(search, choices, 1)[0]])
            acq_function.set_X_pending(found if pending is None else torch.cat([pending, found]))
    finally:
        acq_function.set_X_pending(pending)
    return found, _value(acq_function, found)


@torch.no_grad()
def _value(acq_function: AcquisitionFunction, points: Tensor) -> Tensor:
    return acq_function(points).squeeze()


def _combinations(box: MixedDomain, fixed: Mapping[int, Any]) -> list[dict[int, float]]:
    """The fixed features of every combination of listed values, those that a user gave among them."""
    columns = [column for factor in box.factors for column in factor.columns]
    count = math.prod(len(factor.values) for factor in box.factors)
    if count > MAX_COMBINATIONS:
        raise UnsupportedError(
            f"discrete_dims and cat_dims have {count} combinations of values, and a search that is to be safe takes at "
            f"most {MAX_COMBINATIONS}; fix some inputs, or let numbers be continuous."
        )
    rows = itertools.product(*(factor.values[:, 0].tolist() for factor in box.factors))
    return [{**fixed, **dict(zip(columns, row, strict=True))} for row in rows]


def _best_of(search: Callable[..., Any], choices: list[dict[int, float]], q: int) -> tuple[Tensor, Tensor]:
    """The best of searches with some fixed features; raises the error of the surest refusal if all find nothing."""
    found, refusals = [], []
    for fixed in choices:
        try:
            found.append(search(q=q, fixed_features=fixed or None))
        except InfeasibilityError as error:
            if len(choices) == 1:
                raise CandidateGenerationError(INFEASIBLE) from error
        except NoSafePointError as refusal:
            refusals.append(refusal)
    if found:
        return max(found, key=lambda pair: float(pair[1]))
    if refusals:
        raise max(refusals, key=lambda refusal: refusal.confidence)
    raise CandidateGenerationError(INFEASIBLE)


def gen_valid_candidates(
    initial_conditions: Tensor, acquisition_function: AcquisitionFunction, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    """Candidates and values from feasible starts `b x q x d`, which replace ends that are infeasible or lower."""
    ends, _ = _search(initial_conditions, acquisition_function, **kwargs)
    constraints = {name: kwargs.get(name) for name in CONSTRAINTS}
    best = initial_conditions
    with torch.no_grad():
        value = acquisition_function(best)
        for share in BACKWARDS:
            X = torch.lerp(ends, initial_conditions, share)
            values = acquisition_function(X)
            better = evaluate_feasibility(X, **constraints) & (values > value)  # false for NaN
            best, value = X.where(better.view(-1, 1, 1), best), values.where(better, value)
    return best, value


def _search(starts: Tensor, acquisition_function: AcquisitionFunction, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """`gen_candidates_scipy` without its warnings of searches that stop early, which filters cannot keep down."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = gen_candidates_scipy(starts, acquisition_function, **kwargs)
    for entry in caught:
        if not issubclass(entry.category, OptimizationWarning):
            warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
    return found


def safe_initial_conditions(
    safe: SafetyInequality,
    others: Others,
    seen: Tensor,
    acq_function: AcquisitionFunction,
    bounds: Tensor,
    q: int,
    num_restarts: int,
    raw_samples: int,
    fixed_features: Mapping[int, float | Tensor] | None = None,
    options: dict[str, Any] | None = None,
    **kwargs: Any,
) -> Tensor:
    """Batches of safe points within all constraints, chosen by acquisition value as BoTorch does, `n x q x d`."""
    linear = {name: kwargs.pop(name, None) for name in LINEAR}
    for indices, _, _ in [entry for constraints in linear.values() for entry in constraints or []]:
        if indices.ndim > 1:
            raise UnsupportedError("A search that is to be safe takes linear constraints on single points only.")
    num_points, seed = max(raw_samples, 4 * num_restarts), (options or {}).get("seed")
    points = _safe_points(safe, others, seen, bounds, num_points, fixed_features, linear, seed)

    if q == 1 and len(points) <= num_restarts:
        return points.unsqueeze(-2)

    def generator(n: int, q: int, seed: int | None) -> Tensor:
        random = torch.Generator().manual_seed(seed) if seed is not None else None
        if q == 1:
            return points.cpu().repeat(-(-n // len(points)), 1).unsqueeze(-2)
        order = torch.rand(n, len(points), generator=random)
        is_enough = len(points) >= q  # no point twice in a batch
        which = order.topk(q).indices if is_enough else torch.randint(len(points), (n, q), generator=random)
        return points.cpu()[which]

    return gen_batch_initial_conditions(
        acq_function=acq_function,
        bounds=bounds,
        q=q,
        num_restarts=num_restarts,
        raw_samples=raw_samples,
        fixed_features=None,  # the points have them
        options={k: v for k, v in (options or {}).items() if k != "sample_around_best"},
        generator=generator,
        **kwargs,
    )


def _safe_points(
    safe: SafetyInequality,
    others: Others,
    seen: Tensor,
    bounds: Tensor,
    num_points: int,
    fixed_features: Mapping[int, float | Tensor] | None,
    linear: dict[str, Any],
    seed: int | None,
) -> Tensor:
    """Raw points, and `n x d` seen ones, within all constraints, `n x d`; if none is safe the surest climb."""

    def within_others(X: Tensor) -> tuple[Tensor, Tensor]:
        """Those of some points that satisfy all other constraints, and their excess."""
        X = X[evaluate_feasibility(X.unsqueeze(-2), nonlinear_inequality_constraints=others or None, **linear)]
        with torch.no_grad():
            return X, safe(X)

    if any(linear.values()):
        X = get_polytope_samples(n=num_points, bounds=bounds, seed=seed, **linear)
    else:
        X = draw_sobol_samples(bounds=bounds, n=num_points, q=1, seed=seed).squeeze(-2)
    X = torch.cat([X, seen.to(X)])
    for feature, value in (fixed_features or {}).items():
        X[:, feature] = value
    known = safe.safe_points.to(X)
    for feature, value in (fixed_features or {}).items():
        known = known[known[:, feature] == value]
    X = torch.cat([X, known])
    X, excess = within_others(X[((bounds[0] <= X) & (bounds[1] >= X)).all(-1)])
    if len(X) and not (excess >= 0).any():
        climbed, _ = _search(
            X[excess.topk(min(NUM_CLIMBS, len(X))).indices].unsqueeze(-2),
            LogProbabilityOfSafety(safe.model, safe.level),
            lower_bounds=bounds[0],
            upper_bounds=bounds[1],
            options={"maxiter": MAX_STEPS},
            fixed_features=fixed_features,
            **linear,
        )
        climbed, reached = within_others(climbed.detach().squeeze(-2))
        X, excess = torch.cat([X, climbed]), torch.cat([excess, reached])
    if not (excess >= 0).any():
        raise safe.refusal(X, excess)
    return X[excess >= 0].unique(dim=0)
