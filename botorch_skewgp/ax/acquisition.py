"""Ax's acquisition functions of SkewGPs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import torch
from ax.adapter.transforms.one_hot import OH_PARAM_INFIX
from ax.core.search_space import SearchSpaceDigest
from ax.exceptions.core import UnsupportedError
from ax.generators.torch.botorch_modular.acquisition import Acquisition
from ax.generators.torch.botorch_modular.surrogate import Surrogate
from ax.generators.torch_base import TorchOptConfig
from botorch.acquisition import AcquisitionFunction, PosteriorMean
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.models.model import Model, ModelList
from botorch.utils.datasets import SupervisedDataset
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

from botorch_skewgp.acquisition import SkewLogProbabilityOfImprovement, qExpectedUtilityAfterAnswers
from botorch_skewgp.acquisition.mixed_search import (
    NUM_CLIMBS,
    NUM_SPREAD,
    Factor,
    MixedDomain,
    MixedSearch,
)
from botorch_skewgp.acquisition.reference_point import plausible_reference_point
from botorch_skewgp.acquisition.search_domain import are_new
from botorch_skewgp.ax.data import ObservationDataset
from botorch_skewgp.ax.models import AxSkewGP
from botorch_skewgp.hosts.improvement import (
    LIKELY,
    LogProbabilityOfLatentImprovement,
    WeightedImprovement,
    feasible_mean,
    log_improvement,
)
from botorch_skewgp.hosts.quiet import without_compilation

PAIRS_BY_UTILITY, BEST_POINT = "pairs_by_utility", "best_point"  # options of the acquisition
AGAINST = "against"  # another: the point that is challenged, `1 x d`
OPEN_PAIRS = "skewgp_open_pairs"  # another: the pairs that wait for an answer, `2 x d` each
SEARCHED_BY_HOSTS = {"inequality_constraints", "fixed_features", "rounding_func"}
SAME = 1e-6  # of two points, the largest difference of an input
NUM_THRESHOLD_POINTS = 256  # of the search space, beside the observed ones


class SkewGPAcquisition(Acquisition):
    """Ax's acquisition with four changes: noisy expected improvement has a closed form, weighted by the probabilities
    of the constraints; the expected utility of the best option chooses pairs in experiments without numbers (with the
    option `pairs_by_utility`); thresholds of objectives come from the whole search space; and the order of observed
    and pending points does not depend on the order of arrival.
    """

    def __init__(
        self,
        *,
        surrogate: Surrogate,
        botorch_acqf_class: type[AcquisitionFunction] | None,
        n: int | None = None,
        options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        by_utility = n == 2 and bool((options or {}).get(PAIRS_BY_UTILITY))
        self._asks_for_pair = by_utility and all(map(_has_comparisons_alone, surrogate.training_data))
        self._open_pairs: list[Tensor] = []
        if self._asks_for_pair:
            botorch_acqf_class = qExpectedUtilityOfBestOption
            self._open_pairs = (options or {}).get(OPEN_PAIRS, [])
        super().__init__(surrogate=surrogate, botorch_acqf_class=botorch_acqf_class, n=n, options=options, **kwargs)

    def _instantiate_acquisition(self) -> None:
        """Sort the distinct points first: Ax takes them from sets, in an order that depends on the last digit."""
        known = (self.X_observed, self.X_pending)
        self.X_observed, self.X_pending = (X if X is None else X.unique(dim=0) for X in known)
        if not self._asks_for_pair and self.X_observed is not None and self.X_pending is not None:
            # a compared trial may still run, and equal points make the joint covariance singular
            twice = (self.X_pending.unsqueeze(1) == self.X_observed).all(-1).any(-1)
            self.X_pending = None if bool(twice.all()) else self.X_pending[~twice]
        super()._instantiate_acquisition()

    def _construct_botorch_acquisition(
        self,
        botorch_acqf_class: type[AcquisitionFunction],
        botorch_acqf_options: dict[str, Any],
        model: Model,
    ) -> AcquisitionFunction:
        """As Ax does, or in closed form; functions of the best number are refused where it would be NaN."""
        is_mean, champion = bool(self.options.get(BEST_POINT)), self.options.get(AGAINST)
        if (
            is_mean
            or champion is not None
            or (botorch_acqf_class is qLogNoisyExpectedImprovement and not botorch_acqf_options)
        ):
            weighted = self._weighted_improvement(model, is_mean, champion)
            if weighted is not None:
                return weighted
        if is_mean or champion is not None:
            raise UnsupportedError(
                "The best point, or a challenger, is found where objective and constraints are of single metrics."
            )
        no_best = (
            f"{botorch_acqf_class.__name__} asks for the best number seen, which is known only where every trial "
            "has numbers and none failed or was compared instead. Take qLogNoisyExpectedImprovement, or another "
            "acquisition that asks for the points seen."
        )
        try:
            with without_compilation():
                made = super()._construct_botorch_acquisition(botorch_acqf_class, botorch_acqf_options, model)
        except NotImplementedError as error:  # of BoTorch's best value where models have points of their own
            raise UnsupportedError(no_best) from error
        if self._open_pairs and isinstance(made, qExpectedUtilityOfBestOption):
            after = qExpectedUtilityAfterAnswers(next(iter(getattr(model, "models", [model]))), self._open_pairs)
            after.objective, after.posterior_transform = made.objective, made.posterior_transform
            return after
        best = getattr(made, "best_f", None)
        if isinstance(best, Tensor) and bool(best.isnan().any()):
            raise UnsupportedError(no_best)
        return made

    def _weighted_improvement(self, model: Model, is_mean: bool, champion: Tensor | None) -> WeightedImprovement | None:
        """Weighted improvement over a champion or over the best of likely points, or the mean of likely points; `None`
        for sums of metrics, or if no point seen is likely to meet the constraints.
        """
        everyone = [*model.models] if isinstance(model, ModelList) else [model]
        models = [entry for entry in everyone if isinstance(entry, AxSkewGP)]
        weights = self._objective_weights.flatten()
        used = weights.nonzero().flatten().tolist()
        is_learned = self._learned_objective_preference_model is not None
        if self.X_observed is None or is_learned or len(models) < len(everyone):
            return None
        if len(used) != 1 or models[used[0]].is_probability:
            return None
        X = self.X_observed
        terms: list[AcquisitionFunction] = []
        log_probability = X.new_zeros(len(X))  # of meeting all constraints
        for coefficients, bound in zip(*(self._outcome_constraints or ((), ())), strict=True):
            term = _log_probability_of_constraint(models, coefficients, float(bound))
            if term is None:
                return None
            terms.append(term)
            with torch.no_grad():
                log_probability = log_probability + term(X.unsqueeze(1))
        maximize = bool(weights[used[0]] > 0)
        if is_mean:
            return feasible_mean(PosteriorMean(models[used[0]], maximize=maximize), terms, X_baseline=X)
        baseline = X[log_probability > math.log(LIKELY)] if champion is None else champion
        if not len(baseline):
            return None
        seed = int(torch.randint(2**31, ()))
        improvement = log_improvement(models[used[0]], baseline, self.X_pending, seed, maximize)
        return WeightedImprovement(improvement, *terms, X_baseline=baseline)

    def _update_objective_thresholds(self, torch_opt_config: TorchOptConfig) -> None:
        """Fill in the thresholds that the user did not set."""
        if not torch_opt_config.is_moo:
            return
        if self._objective_thresholds is not None and not self._objective_thresholds.isnan().any():
            return
        weights, constraints = self._objective_weights, self._outcome_constraints
        bounds = torch.tensor(self.search_space_digest.bounds, dtype=weights.dtype, device=weights.device).mT
        X = draw_sobol_samples(bounds, n=NUM_THRESHOLD_POINTS, q=1, seed=0).squeeze(-2)
        for index, value in (torch_opt_config.fixed_features or {}).items():
            X[:, index] = value
        if self.X_observed is not None:
            X = torch.cat([self.X_observed, X])
        inferred, given = plausible_reference_point(self._model, X, weights, constraints), self._objective_thresholds
        self._objective_thresholds = inferred if given is None else torch.where(given.isnan(), inferred, given)

    def optimize(  # type: ignore[override]  # Ax gives all but the first two by name
        self,
        n: int,
        search_space_digest: SearchSpaceDigest,
        *,
        optimizer_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As all hosts do. As Ax does with equality constraints, from points that are given, with options of its own
        where no parameter has a list of values, and for pairs there, which are optimised jointly; else pairs are
        optimised one point after the other, tried points included.
        """
        options = dict(optimizer_options or {})
        bounds = torch.tensor(search_space_digest.bounds, dtype=self.dtype, device=self.device).mT
        factors = _factors(search_space_digest, bounds)
        given = {name: value for name, value in kwargs.items() if value is not None}
        domain = MixedDomain(bounds, factors, given.get("inequality_constraints"), given.get("rounding_func"))
        domain = domain.with_fixed(given.get("fixed_features", {}))
        is_joint = not factors and (self._asks_for_pair or not options.keys() <= {"raw_samples", "num_restarts"})
        if is_joint or given.keys() - SEARCHED_BY_HOSTS or self.acq_function_sequence:
            if self._asks_for_pair and not factors:
                options = {"sequential": False, "num_restarts": NUM_CLIMBS, "raw_samples": NUM_SPREAD, **options}
            found, values, weights = super().optimize(n, search_space_digest, optimizer_options=options, **kwargs)
        else:
            found, values, weights = self._optimize_mixed(n, domain, options)
        if self._open_pairs and not bool(are_new(found.unsqueeze(0), self._open_pairs, SAME)):
            found = self._another_pair(found[:1], domain)
        return found, values, weights[: len(found)]

    @torch.no_grad()
    def _another_pair(self, first: Tensor, domain: MixedDomain) -> Tensor:
        """A point, `1 x d`, and the best one beside it of those with which it makes no open pair; alone without one."""
        others = domain.spread(NUM_SPREAD)
        others = others if domain.process is None else domain.process(others.unsqueeze(1)).squeeze(1)
        sets = torch.stack([first.expand_as(others), others], dim=1)
        sets = sets[are_new(sets, self._open_pairs, SAME) & domain.are_feasible(others)]
        if not len(sets):
            return first
        return sets[self.acqf(sets).argmax()]

    def _optimize_mixed(self, n: int, domain: MixedDomain, options: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
        """Optimise by the search of all hosts, of whose options there are `raw_samples` and `num_restarts`."""
        effort = options.pop("raw_samples", NUM_SPREAD), options.pop("num_restarts", NUM_CLIMBS)
        if options:
            raise UnsupportedError(f"Where a parameter has a list of values, leave out {', '.join(options)}.")
        known = [X for X in (self.X_observed, self.X_pending) if X is not None]
        X_seen = torch.cat(known) if known else domain.bounds[:0]
        generator = torch.Generator().manual_seed(int(torch.randint(2**31, ())))
        may_repeat = self._asks_for_pair or bool(self.options.get(BEST_POINT))
        found = MixedSearch(self.acqf, domain, generator, may_repeat, *effort).best_points(n, X_seen)
        with torch.no_grad():
            values = self.acqf(found.unsqueeze(1))
        return found, values, torch.ones(n, dtype=self.dtype)


def _has_comparisons_alone(dataset: SupervisedDataset) -> bool:
    """Whether all observations compare points."""
    return isinstance(dataset, ObservationDataset) and all(kind.points_per_observation > 1 for kind in dataset.kinds)


def _log_probability_of_constraint(
    models: Sequence[AxSkewGP], coefficients: Tensor, bound: float
) -> SkewLogProbabilityOfImprovement | None:
    """The log probability of a constraint; `None` for sums of metrics, and for probabilities beyond 0 or 1."""
    used = coefficients.nonzero().flatten().tolist()
    if len(used) != 1:
        return None
    model, coefficient = models[used[0]], float(coefficients[used[0]])
    limit, is_above = bound / coefficient, coefficient < 0
    if not model.is_probability:
        return SkewLogProbabilityOfImprovement(model, limit, maximize=is_above)
    if not 0 < limit < 1:
        return None
    quantile = float(model.likelihood.noise) ** 0.5 * NormalDist().inv_cdf(limit)
    return LogProbabilityOfLatentImprovement(model, quantile, maximize=is_above)


def _factors(digest: SearchSpaceDigest, like: Tensor) -> tuple[Factor, ...]:
    """The parameters with a list of values; an unordered choice has the one-hot columns of Ax's `OneHot`."""
    factors = []
    for column in (*digest.ordinal_features, *digest.categorical_features):
        values = like.new_tensor(digest.discrete_choices[column]).unsqueeze(-1)
        factors.append(Factor([column], values, column in digest.categorical_features))
    one_hot: dict[str, list[int]] = {}  # the columns of each parameter
    for column, name in enumerate(digest.feature_names):
        parameter, infix, _ = name.rpartition(OH_PARAM_INFIX)
        if infix:
            one_hot.setdefault(parameter, []).append(column)
    for columns in one_hot.values():
        factors.append(Factor(columns, torch.eye(len(columns)).to(like), True))
    return tuple(factors)
