"""Ax's acquisition functions of SkewGPs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from ax.core.search_space import SearchSpaceDigest
from ax.exceptions.core import UnsupportedError
from ax.generators.torch.botorch_modular.acquisition import Acquisition
from ax.generators.torch.botorch_modular.surrogate import Surrogate
from ax.generators.torch_base import TorchOptConfig
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.models.model import Model
from botorch.optim.optimize_mixed import MAX_DISCRETE_VALUES, optimize_acqf_mixed_alternating
from botorch.utils.sampling import draw_sobol_samples
from torch import Tensor

from botorch_skewgp.acquisition.reference_point import plausible_reference_point
from botorch_skewgp.acquisition.search_domain import mixed_search_options
from botorch_skewgp.ax.categories import CategoryCoordinates, Constraints, NumberedAcquisition, categories_of
from botorch_skewgp.ax.data import ObservationDataset
from botorch_skewgp.ax.noisy_improvement import BaselineLogNoisyExpectedImprovement
from botorch_skewgp.hosts.compilation import without_compilation

PAIRS_BY_UTILITY = "pairs_by_utility"  # an option of the acquisition
NUM_THRESHOLD_POINTS = 256  # of the search space, beside the observed ones
# For one and two dimensions; each further one adds half as much, up to Ax's own numbers. In the races with failures
# four starts out of 256 points ended where Ax's twenty out of 1024 did, in half the time.
MIN_RESTARTS, MAX_RESTARTS = 4, 20
MIN_RAW_SAMPLES, MAX_RAW_SAMPLES = 256, 1024
# No second search where a line search found no descent: constraints on probabilities are so sharp, with second
# derivatives of 1e5, that at a maximum only rounding of 1e-11 of a value is left to descend.
ONCE = {"retry_on_optimization_warning": False}


class SkewGPAcquisition(Acquisition):
    """Ax's acquisition with three changes: the expected utility of the best option chooses pairs in experiments
    without numbers (with the option `pairs_by_utility`), thresholds of objectives come from the whole search space,
    and the order of observed and pending points does not depend on the order of arrival.
    """

    def __init__(
        self,
        surrogate: Surrogate,
        search_space_digest: SearchSpaceDigest,
        torch_opt_config: TorchOptConfig,
        botorch_acqf_class: type[AcquisitionFunction] | None,
        botorch_acqf_options: dict[str, Any] | None = None,
        botorch_acqf_classes_with_options: list[tuple[type[AcquisitionFunction], dict[str, Any]]] | None = None,
        n: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self._asks_for_pair = (
            n == 2 and bool((options or {}).get(PAIRS_BY_UTILITY)) and _has_comparisons_only(surrogate)
        )
        if self._asks_for_pair:
            botorch_acqf_class = qExpectedUtilityOfBestOption
        if botorch_acqf_class is qLogNoisyExpectedImprovement:
            botorch_acqf_class = BaselineLogNoisyExpectedImprovement
        super().__init__(
            surrogate=surrogate,
            search_space_digest=search_space_digest,
            torch_opt_config=torch_opt_config,
            botorch_acqf_class=botorch_acqf_class,
            botorch_acqf_options=botorch_acqf_options,
            botorch_acqf_classes_with_options=botorch_acqf_classes_with_options,
            n=n,
            options=options,
        )

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
        """As Ax does; refuse functions of the best number where some points have none, which would be NaN."""
        no_best = (
            f"{botorch_acqf_class.__name__} asks for the best number seen, which can be told only where every trial "
            "has numbers and none failed or was compared instead. Take qLogNoisyExpectedImprovement, or another "
            "acquisition that asks for the points seen."
        )
        try:
            with without_compilation():
                made = super()._construct_botorch_acquisition(botorch_acqf_class, botorch_acqf_options, model)
        except NotImplementedError as error:  # of BoTorch's best value where models have points of their own
            raise UnsupportedError(no_best) from error
        best = getattr(made, "best_f", None)
        if isinstance(best, Tensor) and bool(best.isnan().any()):
            raise UnsupportedError(no_best)
        return made

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

    def optimize(
        self, n: int, search_space_digest: SearchSpaceDigest, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As Ax does, with fewer starts in few dimensions, and in mixed spaces always alternating between discrete and
        continuous parameters. Pairs are optimised jointly, or one after the other among discrete points, tried ones
        included.
        """
        from_points = any(kwargs.get(name) is not None for name in ("candidate_set", "sampling_strategy"))
        categories = None if from_points else categories_of(search_space_digest)
        if categories is not None:
            return self._optimize_numbered(categories, n, *args, **kwargs)
        dim = len(search_space_digest.feature_names) * (n if self._asks_for_pair else 1)
        is_mixed = not from_points and _is_mixed(search_space_digest, kwargs.get("fixed_features"))
        effort = _effort(dim, starts_in_each=1 if is_mixed else 2)
        has_values = search_space_digest.ordinal_features or search_space_digest.categorical_features
        if not (from_points or has_values):
            effort |= ONCE
        kwargs["optimizer_options"] = effort | (kwargs.get("optimizer_options") or {})
        if is_mixed:
            return self._optimize_mixed(n, search_space_digest, *args, **kwargs)
        if not self._asks_for_pair:
            return super().optimize(n, search_space_digest, *args, **kwargs)
        if not has_values:
            kwargs["optimizer_options"] = {"sequential": False, **kwargs["optimizer_options"]}
            return super().optimize(n, search_space_digest, *args, **kwargs)
        tried = self.X_observed, self.X_pending  # Ax's discrete optimisers do not return these
        self.X_observed = self.X_pending = None
        try:
            return super().optimize(n, search_space_digest, *args, **kwargs)
        finally:
            self.X_observed, self.X_pending = tried

    def _optimize_numbered(
        self,
        categories: CategoryCoordinates,
        n: int,
        inequality_constraints: Constraints | None = None,
        equality_constraints: Constraints | None = None,
        fixed_features: dict[int, float] | None = None,
        rounding_func: Callable[[Tensor], Tensor] | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Optimise with one coordinate for each unordered choice."""
        before = self.acqf, self.X_observed, self.X_pending
        self.acqf = NumberedAcquisition(self.acqf, categories)
        self.X_observed, self.X_pending = (None if X is None else categories.numbered(X) for X in before[1:])
        try:
            candidates, values, weights = self.optimize(
                n,
                categories.digest,
                inequality_constraints=categories.constraints(inequality_constraints),
                equality_constraints=categories.constraints(equality_constraints),
                fixed_features=categories.fixed_features(fixed_features),
                rounding_func=categories.rounding(rounding_func),
                **kwargs,
            )
        finally:
            self.acqf, self.X_observed, self.X_pending = before
        return categories.one_hot(candidates), values, weights

    def _optimize_mixed(
        self,
        n: int,
        search_space_digest: SearchSpaceDigest,
        inequality_constraints: Constraints | None = None,
        equality_constraints: Constraints | None = None,
        fixed_features: dict[int, float] | None = None,
        rounding_func: Callable[[Tensor], Tensor] | None = None,
        optimizer_options: dict[str, Any] | None = None,
        **unused: None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Optimise by turns in the discrete and the continuous parameters, from feasible random points.

        With up to ten combinations of discrete values Ax searches the continuous parameters for each of them; with
        linear constraints it starts from points of a random walk, one at a time. Points as good take a fifth of the
        time here.
        """
        bounds = torch.tensor(search_space_digest.bounds, dtype=self.dtype, device=self.device).mT
        choices = {i: list(values) for i, values in search_space_digest.discrete_choices.items()}
        kwargs = dict(optimizer_options or {})
        candidates, values = optimize_acqf_mixed_alternating(
            acq_function=self.acqf,
            bounds=bounds,
            discrete_dims={i: choices[i] for i in search_space_digest.ordinal_features},
            cat_dims={i: choices[i] for i in search_space_digest.categorical_features},
            options=mixed_search_options(self.acqf, bounds) | kwargs.pop("options", {}),
            q=n,
            post_processing_func=rounding_func,
            fixed_features=fixed_features,
            inequality_constraints=inequality_constraints,
            equality_constraints=equality_constraints,
            **kwargs,
        )
        assert values is not None
        return candidates, values, torch.ones(len(candidates), dtype=self.dtype)


def _is_mixed(search_space_digest: SearchSpaceDigest, fixed_features: Mapping[int, float] | None) -> bool:
    """Whether some but not all free parameters have a list of values, one of them so short that BoTorch does not treat
    it as continuous.
    """
    chosen = set(range(len(search_space_digest.feature_names))) - set(fixed_features or ())
    ordinal, categorical = set(search_space_digest.ordinal_features), set(search_space_digest.categorical_features)
    choices = search_space_digest.discrete_choices
    has_few = any(len(choices[i]) <= MAX_DISCRETE_VALUES for i in chosen & ordinal) or bool(chosen & categorical)
    return has_few and not chosen <= ordinal | categorical


def _effort(dim: int, starts_in_each: int) -> dict[str, int]:
    """The numbers of starts and of raw points."""
    return {
        "num_restarts": min(max(starts_in_each * dim, MIN_RESTARTS), MAX_RESTARTS),
        "raw_samples": min(max(128 * dim, MIN_RAW_SAMPLES), MAX_RAW_SAMPLES),
    }


def _has_comparisons_only(surrogate: Surrogate) -> bool:
    return all(
        isinstance(dataset, ObservationDataset) and all(kind.points_per_observation > 1 for kind in dataset.kinds)
        for dataset in surrogate.training_data
    )
