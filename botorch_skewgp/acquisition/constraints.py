r"""Unknown constraints and safety: the probability that an experiment is valid as a constraint.

From soft to hard: `ValidityConstraint` for Monte Carlo acquisition functions, `ValidityWeightedAcquisitionFunction` for
analytic ones, and `next_safe`, which keeps the probability of all candidates above a level.

.. [Gelbart2014unknown] M. A. Gelbart, J. Snoek, R. P. Adams. Bayesian optimization with unknown constraints. UAI 2014.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import CandidateGenerationError, InfeasibilityError, InputDataError, UnsupportedError
from botorch.exceptions.warnings import OptimizationWarning
from botorch.generation.gen import gen_candidates_scipy
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from botorch.optim.initializers import gen_batch_initial_conditions
from botorch.optim.parameter_constraints import evaluate_feasibility
from botorch.utils.sampling import draw_sobol_samples, get_polytope_samples
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor
from torch.nn import Module

from botorch_skewgp.acquisition.search_options import CONSTRAINTS, INFEASIBLE, LINEAR, with_columns
from botorch_skewgp.acquisition.validity import (
    LogProbabilityOfValidity,
    log_probability_of_validity,
    validity_functions,
    warn_of_few_outcomes,
)
from botorch_skewgp.checks import as_count, as_number, as_probability, check_class
from botorch_skewgp.inputs.points import as_bounds

Others = list[tuple[Callable[[Tensor], Tensor], bool]]  # non-linear constraints, on single points
NUM_CLIMBS = 16  # points that climb the probability of validity if there are too few raw ones


class ValidityConstraint(Module):
    r"""Validity as a constraint on samples, for the `constraints` argument of BoTorch's acquisition functions.

    A sample `f` of the latent function is valid with probability `p(f) = Phi((f - threshold) / sqrt(noise))`, which is
    BoTorch's feasibility `sigmoid(-c / eta)` of the constraint's value `c = -eta log(p / (1 - p))`, without further
    smoothing. Give the acquisition function the same `eta` (BoTorch's default is the default here too) and leave `fat`
    off; or pass `probability` with `fat=[None]`.

    BoTorch's noisy improvement warns if all training points are infeasible in one of its samples. With few valid trials
    ignore that; without any, maximise `LogProbabilityOfValidity`.

    Example:
        >>> validity = SkewGP(train_X, Validity(worked))
        >>> acq = qLogExpectedImprovement(
        ...     ModelList(objective, validity),
        ...     best_f=0.0,
        ...     objective=GenericMCObjective(lambda Y, X=None: Y[..., 0]),
        ...     constraints=[ValidityConstraint(validity, output=1)],
        ... )

    Args:
        model: As for `LogProbabilityOfValidity`; samples of an ensemble's members have thresholds of their own.
        output: The output of the samples that is its latent function.
        eta: The temperature of the acquisition function; an `InputDataError` if it is not positive.
    """

    threshold: Tensor
    noise_scale: Tensor

    def __init__(self, model: Model, output: int = -1, eta: float = 1e-3) -> None:
        if as_number(eta, "eta") <= 0:
            raise InputDataError(f"eta must be positive; got {eta}.")
        super().__init__()
        thresholds, deviations = [], []
        for member, function in validity_functions(model):
            self.sign, scale = function.sign, member.outcome_scale
            thresholds.append(scale.unstandardize(function.center).detach())
            deviations.append((scale.scale * function.noise.sqrt()).detach())
        # `E x 1` for the samples of an ensemble, `... x E x q`
        self.register_buffer("threshold", torch.stack(thresholds).unsqueeze(-1).squeeze(0))
        self.register_buffer("noise_scale", torch.stack(deviations).unsqueeze(-1).squeeze(0))
        self.output, self.eta = output, eta

    def _margin(self, samples: Tensor) -> Tensor:
        distance = samples[..., self.output] - self.threshold.to(samples)
        return self.sign * distance / self.noise_scale.to(samples)

    def probability(self, samples: Tensor) -> Tensor:
        """The probabilities that `... x q x m` samples are valid, `... x q`; smooth."""
        return torch.special.log_ndtr(self._margin(samples)).exp()

    def forward(self, samples: Tensor) -> Tensor:
        """The constraint's values at `... x q x m` samples, `... x q`; negative means feasible."""
        margin = self._margin(samples)
        return self.eta * (torch.special.log_ndtr(-margin) - torch.special.log_ndtr(margin))


class ValidityWeightedAcquisitionFunction(AcquisitionFunction):
    r"""An acquisition function times the probability of validity ([Gelbart2014unknown]_); their sum in logarithms.

    The expected utility of valid experiments alone, if validity and the objective are independent given the data.

    Example:
        >>> ei = SkewLogExpectedImprovement(objective, best_f=0.0)
        >>> acq = ValidityWeightedAcquisitionFunction(ei, SkewGP(train_X, Validity(worked)))
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    The acquisition function is a logarithm or never negative, and of single points; the model is as for
    `LogProbabilityOfValidity`.
    """

    def __init__(self, acq_function: AcquisitionFunction, model: Model) -> None:
        super().__init__(model=acq_function.model)
        self.acq_function = acq_function
        self.validity = LogProbabilityOfValidity(model)
        self._log = acq_function._log

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Set the pending points of the acquisition function."""
        self.acq_function.set_X_pending(X_pending)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The weighted value at `batch_shape x 1 x d` candidates; `batch_shape`."""
        log_probability = self.validity(X)
        value = self.acq_function(X)
        return value + log_probability if self._log else value * log_probability.exp()


class ValidityInequality(Module):
    r"""`P(valid at x) >= level`, a non-linear inequality constraint for `optimize_acqf`.

    With few labels give an ensemble whose hyperparameters are sampled (`fit_fully_bayesian_skew_gp`) and `Validity`
    observations: the page of sharp bits compares claimed and true probabilities. A `FewAnswersWarning` is issued if a
    single model has fewer than 30 (a `OneClassWarning` if all are of one class): fitted hyperparameters claim too much.

    An intra-point constraint, on every point of a batch by itself; `next_safe` searches within it. The difference of
    the log odds changes with the latent function even where probabilities are nearly 0 or 1, as SLSQP needs.

    Example:
        >>> safe = ValidityInequality(SkewGP(train_X, Validity(worked)), level=0.9)
        >>> is_safe = safe(train_X) >= 0

    The model is as for `LogProbabilityOfValidity`. Raises `InputDataError` if the level is outside (0, 1).
    """

    def __init__(self, model: Model, level: float = 0.95) -> None:
        super().__init__()
        level = as_probability(level, "level")
        warn_of_few_outcomes(model)
        self.model, self.level = model, level

    def forward(self, X: Tensor) -> Tensor:
        """The log odds at `... x d` points less those of the level, `...`; differentiable."""
        odds = log_probability_of_validity(self.model, X.unsqueeze(-2), log_odds=True).squeeze(-1)
        return odds - math.log(self.level / (1 - self.level))


def next_safe(
    acq_function: AcquisitionFunction,
    bounds: Tensor,
    validity: Model,
    level: float = 0.95,
    q: int = 1,
    num_restarts: int = 10,
    raw_samples: int = 256,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    r"""The best experiment of those that work with at least a given probability, each by itself.

    BoTorch's `optimize_acqf` with a `ValidityInequality`, which starts and ends of searches satisfy.

    Example:
        >>> ensemble = fit_fully_bayesian_skew_gp(fit_skew_gp(SkewGP(train_X, Validity(worked))), num_draws=4)
        >>> candidate, value = next_safe(acq, bounds, ensemble, level=0.9)

    The model of `validity` and `level` are as for `ValidityInequality`, other arguments as for `optimize_acqf`, such as
    linear constraints or fixed features. Returns the experiments, `q x d`, and their acquisition value.

    Raises:
        InputDataError: If the level is outside (0, 1), the bounds are not `2 x d`, or an option is set here.
        UnsupportedError: If the likelihood takes neither kind, or a non-linear constraint is on several points.
        CandidateGenerationError: If no point with the wanted probability of validity was found.
    """
    check_class(acq_function, "acq_function", AcquisitionFunction)
    check_class(validity, "validity", Model)
    own = sorted({"batch_initial_conditions", "gen_candidates", "ic_generator"} & options.keys())
    if own:
        raise InputDataError(f"next_safe finds starts and candidates that are safe; leave {', '.join(own)} out.")
    safe = ValidityInequality(validity, level)
    points = validity_functions(validity)[0][0].datapoints
    bounds = as_bounds(bounds, points.shape[-1]).to(points)
    options = with_columns(options, bounds)
    others = list(options.pop("nonlinear_inequality_constraints", None) or [])
    if not all(is_of_points for _, is_of_points in others):
        raise UnsupportedError("A search that is to be safe takes non-linear constraints on single points only.")
    try:
        return optimize_acqf(
            acq_function,
            bounds,
            q=as_count(q, "q", least=1),
            num_restarts=as_count(num_restarts, "num_restarts", least=1),
            raw_samples=as_count(raw_samples, "raw_samples", least=1),
            nonlinear_inequality_constraints=[*others, (safe, True)],
            ic_generator=partial(safe_initial_conditions, safe, others),
            gen_candidates=gen_valid_candidates,  # type: ignore[arg-type]  # BoTorch's own is none either
            **{"retry_on_optimization_warning": False, **options},
        )  # type: ignore[return-value]
    except InfeasibilityError as error:
        raise CandidateGenerationError(INFEASIBLE) from error


def gen_valid_candidates(
    initial_conditions: Tensor, acquisition_function: AcquisitionFunction, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    """Candidates and values from feasible starts `b x q x d`, which replace ends that are infeasible or lower."""
    candidates, values = _search(initial_conditions, acquisition_function, **kwargs)
    with torch.no_grad():
        before = acquisition_function(initial_conditions)
        inside = evaluate_feasibility(candidates, **{name: kwargs.get(name) for name in CONSTRAINTS})
    better = inside & (values >= before)  # false for NaN
    return candidates.where(better.view(-1, 1, 1), initial_conditions), values.where(better, before)


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
    safe: ValidityInequality,
    others: Others,
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
    for value in (fixed_features or {}).values():
        if isinstance(value, Tensor) and value.numel() > 1:
            raise UnsupportedError("A search that is to be safe takes fixed features of a single value.")
    for indices, _, _ in [entry for constraints in linear.values() for entry in constraints or []]:
        if indices.ndim > 1:
            raise UnsupportedError("A search that is to be safe takes linear constraints on single points only.")
    num_points, seed = max(raw_samples, 4 * num_restarts), (options or {}).get("seed")
    points = _safe_points(safe, others, bounds, num_points, fixed_features, linear, seed)

    def generator(n: int, q: int, seed: int | None) -> Tensor:
        random = torch.Generator().manual_seed(seed) if seed is not None else None
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
    safe: ValidityInequality,
    others: Others,
    bounds: Tensor,
    num_points: int,
    fixed_features: Mapping[int, float | Tensor] | None,
    linear: dict[str, Any],
    seed: int | None,
) -> Tensor:
    """Raw points, and the model's own, within all constraints, `n x d`; of too few the best climb the probability."""

    def within_others(X: Tensor) -> tuple[Tensor, Tensor]:
        """Those of some points that satisfy all other constraints, and their excess."""
        X = X[evaluate_feasibility(X.unsqueeze(-2), nonlinear_inequality_constraints=others or None, **linear)]
        with torch.no_grad():
            return X, safe(X)

    if any(linear.values()):
        X = get_polytope_samples(n=num_points, bounds=bounds, seed=seed, **linear)
    else:
        X = draw_sobol_samples(bounds=bounds, n=num_points, q=1, seed=seed).squeeze(-2)
    seen = validity_functions(safe.model)[0][0].datapoints.to(X)
    X = torch.cat([X, seen[((seen >= bounds[0]) & (seen <= bounds[1])).all(-1)]])
    for feature, value in (fixed_features or {}).items():
        X[:, feature] = value
    X, excess = within_others(X)
    if len(X) and (excess >= 0).sum() < NUM_CLIMBS:
        climbed, _ = _search(
            X[excess.topk(min(NUM_CLIMBS, len(X))).indices].unsqueeze(-2),
            LogProbabilityOfValidity(safe.model),
            lower_bounds=bounds[0],
            upper_bounds=bounds[1],
            fixed_features=fixed_features,
            **linear,
        )
        climbed, reached = within_others(climbed.detach().squeeze(-2))
        X, excess = torch.cat([X, climbed]), torch.cat([excess, reached])
    if not (excess >= 0).any():
        odds = excess + math.log(safe.level / (1 - safe.level))
        found = f"{float(odds.max().sigmoid()):.3g}" if len(odds) else "none"
        raise CandidateGenerationError(
            f"No point was found whose probability of validity is at least {safe.level}; the largest "
            f"found is {found}. Lower the level, or gather valid outcomes first."
        )
    return X[excess >= 0]
