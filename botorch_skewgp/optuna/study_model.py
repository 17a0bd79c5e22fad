r"""SkewGPs of what a study knows, and acquisition functions of them.

.. [Letham2019noisyei] B. Letham, B. Karrer, G. Ottoni, E. Bakshy. Constrained Bayesian optimization with noisy
   experiments. Bayesian Analysis 14, 2019.
"""

from __future__ import annotations

import math

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.exceptions.errors import UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelList
from botorch.models.kernels import CategoricalKernel
from botorch.models.transforms.outcome import Standardize
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_skewgp.acquisition import (
    LogProbabilityOfValidity,
    SkewLogNoisyExpectedImprovement,
    SkewLogProbabilityOfImprovement,
)
from botorch_skewgp.acquisition.reference_point import plausible_reference_point
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewGP
from botorch_skewgp.models.defaults import default_covar_module
from botorch_skewgp.observations import Numeric, Observation, Preference, Tie, Validity
from botorch_skewgp.optuna.search_space import SearchSpace
from botorch_skewgp.optuna.study_data import StudyData
from botorch_skewgp.truncated.draws import DrawSettings

NUM_DRAWS = 512  # of the rows; where there are none, of the values at the points seen


class SumOfLogs(AcquisitionFunction):
    r"""The sum of logarithmic acquisition functions of single points: the logarithm of a product.

    Args:
        terms: The functions.
        X_baseline: An `n x d` tensor of points, of which BoTorch's optimisers look around the best.
    """

    _log = True

    def __init__(self, *terms: AcquisitionFunction, X_baseline: Tensor) -> None:
        super().__init__(model=terms[0].model)
        self.terms = torch.nn.ModuleList(terms)
        self.X_baseline = X_baseline

    def forward(self, X: Tensor) -> Tensor:
        """The sum at `batch_shape x 1 x d` candidates; `batch_shape`."""
        return torch.stack([term(X) for term in self.terms]).sum(0)


class StudyModel:
    r"""The models of a study: of its objectives, of where trials work, and of constraints.

    Where trials fail is a function of its own. Comparisons and numbers share one: that of the objective.

    Args:
        data: What the study knows.
        space: The search space.

    Raises:
        UnsupportedError: If trials were compared in a study of several objectives.
    """

    def __init__(self, data: StudyData, space: SearchSpace) -> None:
        self.data, self.space = data, space
        self.objectives = [self._fitted(entries) for entries in self._of_objectives()]
        failed = bool((data.valid == 0).any())
        self.validity = self._fitted([_validity(data.valid)]) if failed else None
        self.constraints = [self._fitted([_numbers(column)]) for column in data.constraints.unbind(-1)]

    def _of_objectives(self) -> list[list[Observation]]:
        """What was observed of each objective; nothing if there is one of which nothing is known."""
        data, columns = self.data, self.data.numbers.unbind(-1)
        observed: list[list[Observation]] = [[] if column.isnan().all() else [_numbers(column)] for column in columns]
        if data.preferences or data.ties:
            if len(observed) != 1:
                raise UnsupportedError("Comparisons need a study of one objective.")
            kinds = ((Preference, data.preferences), (Tie, data.ties))
            observed[0] += [kind(torch.tensor(pairs)) for kind, pairs in kinds if pairs]
        return observed if all(observed) else []

    def _fitted(self, observations: list[Observation]) -> SkewGP:
        model = SkewGP(
            self.data.X,
            observations,
            covar_module=covar_module(self.space, observations),
            outcome_transform=Standardize(m=1),
            draw_settings=DrawSettings(num_draws=NUM_DRAWS),
        )
        fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
        return model

    def acquisition(self, seed: int, X_pending: Tensor) -> AcquisitionFunction | None:
        r"""What the next point is to maximise.

        The logarithm of the expected improvement over the best of the points that met all constraints, whichever of
        them that is ([Letham2019noisyei]_ in closed form; of several objectives, of the hypervolume), weighted by the
        probabilities that the trial works and meets the constraints. Where no point met them or nothing is known of the
        objective yet, these probabilities alone; `None` if there are none either.

        Args:
            seed: The seed of base samples.
            X_pending: A `p x d` tensor of points that are being evaluated.
        """
        terms: list[AcquisitionFunction] = []
        baseline = self._baseline()
        if self.objectives and len(baseline):
            terms.append(self._improvement(baseline, X_pending, seed))
        if self.validity is not None:
            # where there is nothing else to tell pending points from others, they are taken to fail
            lies = X_pending if not terms else X_pending[:0]
            terms.append(LogProbabilityOfValidity(_believing_failures(self.validity, lies)))
        terms += [SkewLogProbabilityOfImprovement(model, best_f=0.0, maximize=False) for model in self.constraints]
        return SumOfLogs(*terms, X_baseline=baseline if len(baseline) else self.data.X) if terms else None

    def _baseline(self) -> Tensor:
        """The points that a new one has to be better than: in a preferential study those that it will be compared
        with, as far as they were compared; in others, all of which something is known.
        """
        data = self.data
        known = data.feasible & (data.compared | ~data.numbers.isnan().any(-1))
        shown = known & data.shown
        return data.X[shown if shown.any() else known]

    def _improvement(self, baseline: Tensor, X_pending: Tensor, seed: int) -> AcquisitionFunction:
        pending = X_pending if len(X_pending) else None
        if len(self.objectives) == 1:
            (model,) = self.objectives
            few = 1 if self.data.preferences or self.data.ties else NUM_DRAWS
            improvement = SkewLogNoisyExpectedImprovement(model, baseline, samples_per_draw=few, seed=seed)
            improvement.set_X_pending(pending)
            return improvement
        models = ModelList(*self.objectives)
        weights = torch.eye(len(self.objectives), dtype=baseline.dtype)
        reference = plausible_reference_point(models, torch.cat([baseline, self.space.spread(256)]), weights)
        return qLogNoisyExpectedHypervolumeImprovement(
            models, reference, baseline, X_pending=pending, prune_baseline=True, cache_root=False
        )


def covar_module(space: SearchSpace, observations: list[Observation]) -> Kernel:
    r"""The default kernel of the observations, times one of the categories.

    Any two categories of a parameter are as far from each other as the ends of a numeric parameter, whose prior their
    lengthscale has: `exp(-1 / (2 l^2))` is the covariance in both cases.

    Args:
        space: The search space.
        observations: What the model is to be of.
    """
    scaled = default_covar_module(space.dim, observations)
    categorical = list(space.cat_dims)
    if not categorical:
        return scaled
    prior, count = scaled.base_kernel.lengthscale_prior, len(categorical)
    # CategoricalKernel averages over parameters and divides by its lengthscale: 1 / (count ell) = 1 / (2 l^2)
    location, spread = math.log(2 / count) + 2 * float(prior.loc), 2 * float(prior.scale)
    categories = CategoricalKernel(
        ard_num_dims=count,
        active_dims=categorical,
        lengthscale_prior=LogNormalPrior(location, spread),
        lengthscale_constraint=GreaterThan(1e-3, transform=None, initial_value=math.exp(location)),
    )
    numeric = [i for i in range(space.dim) if i not in space.cat_dims]
    base: Kernel = categories
    if numeric:
        rbf = scaled.base_kernel
        narrowed = type(rbf)(
            ard_num_dims=len(numeric),
            active_dims=numeric,
            lengthscale_prior=prior,
            lengthscale_constraint=rbf.raw_lengthscale_constraint,
        )
        narrowed.lengthscale = rbf.lengthscale[..., : len(numeric)].detach()
        base = narrowed * categories
    scaled.base_kernel = base
    return scaled


def _numbers(column: Tensor) -> Numeric:
    known = (~column.isnan()).nonzero().squeeze(-1)
    return Numeric(column[known], index=known)


def _validity(valid: Tensor) -> Validity:
    known = (~valid.isnan()).nonzero().squeeze(-1)
    return Validity(valid[known] == 1, index=known)


def _believing_failures(model: SkewGP, X: Tensor) -> SkewGP:
    if not len(X):
        return model
    return model.condition_on_observations(X, Validity(torch.zeros(len(X), dtype=torch.bool)))
