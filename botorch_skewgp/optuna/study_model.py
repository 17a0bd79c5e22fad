"""SkewGPs of what a study knows, and acquisition functions of them."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelList
from botorch.models.kernels import CategoricalKernel
from botorch.models.transforms.outcome import Standardize
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from botorch_skewgp.acquisition import LogProbabilityOfValidity, SkewLogProbabilityOfImprovement
from botorch_skewgp.acquisition.reference_point import plausible_reference_point
from botorch_skewgp.hosts.data import Observed
from botorch_skewgp.hosts.improvement import WeightedImprovement, log_improvement
from botorch_skewgp.hosts.quiet import without_compilation
from botorch_skewgp.likelihoods.registry import default_likelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewGP
from botorch_skewgp.models.defaults import default_covar_module
from botorch_skewgp.observations import Observation, Validity
from botorch_skewgp.optuna.search_space import SearchSpace
from botorch_skewgp.optuna.study_data import StoredFit, StudyData
from botorch_skewgp.optuna.turns import seeded
from botorch_skewgp.truncated.draws import DrawSettings

NUM_DRAWS = 512  # of the rows

FIT_OPTIONS = {"ftol": 1e-5}  # further digits of hyperparameters change no choice of a point, and cost a third of a fit

CORRELATION = 0.5  # of functions of two categories


class Fits:
    """Fitted models, each kept while its data and search space are asked for, which only saves time: hyperparameters
    are stored with the study, stay until there are more points by a fifth, and are then a start. Threads take turns.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._lock = threading.Lock()
        self._kept: dict[str, SkewGP] = {}

    @contextmanager
    def of(
        self, space: SearchSpace, stored: Sequence[StoredFit] = ()
    ) -> Iterator[Callable[[Observed, str], tuple[SkewGP, StoredFit]]]:
        """A function that fits models, within a context at whose end all others are dropped."""
        with self._lock:
            used: dict[str, SkewGP] = {}

            def fitted(known: Observed, function: str) -> tuple[SkewGP, StoredFit]:
                data = _digest(space, known)
                same = [entry for entry in stored if entry.data == data]
                ended = [entry for entry in stored if entry.function == function and entry.has_ended]
                given = next(reversed(same or ended), None)
                is_kept = bool(same) or (given is not None and given.covers(len(known.X)))
                if data not in self._kept:
                    self._kept[data] = fitted_model(known, space, given=given, is_kept=is_kept, seed=self._seed)
                model = used[data] = self._kept[data]
                values = parameters_to_vector(model.parameters()).tolist()
                is_given = is_kept and given is not None and values == given.values
                num_points = given.num_points if given is not None and is_given else len(known.X)
                return model, StoredFit(function, data, values, num_points)

            yield fitted
            self._kept = used


def fitted_model(
    known: Observed,
    space: SearchSpace,
    kinds: Sequence[type[Observation]] = (),
    given: StoredFit | None = None,
    is_kept: bool = False,
    seed: int = 0,
) -> SkewGP:
    """A model of one function, with given hyperparameters or fitted, then from given ones on if there are any.

    Of failures and successes, of which a search wants probabilities, the posterior is that of expectation propagation;
    of failures alone this is too broad to tell tried points from others.
    """
    model = SkewGP(
        known.X,
        known.observations,
        default_likelihood(known.observations, kinds) if kinds else None,
        covar_module=covar_module(space, known.observations),
        outcome_transform=Standardize(m=1),
        draw_settings=DrawSettings(num_draws=NUM_DRAWS),
        approximation="ep" if all(isinstance(e, Validity) and e.valid.any() for e in known.observations) else None,
    )
    own = parameters_to_vector(model.parameters())
    is_given = given is not None and len(given.values) == len(own)
    if given is not None and is_given:
        vector_to_parameters(own.new_tensor(given.values), model.parameters())
    if not (is_given and is_kept):
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
        with seeded(seed):
            fit_gpytorch_mll(mll, optimizer_kwargs={"options": FIT_OPTIONS})
    model.eval()
    with seeded(seed):
        model.latent_posterior(known.X[:1])  # makes the draws
    return model


def _digest(space: SearchSpace, known: Observed) -> str:
    """A text that tells data and search space from all others."""
    told = hashlib.sha256(repr(list(space.distributions.items())).encode())
    parts: list[Any] = [known.X]
    for entry in known.observations:
        parts += [type(entry).__name__, *(getattr(entry, field.name) for field in fields(entry))]
    for part in parts:
        is_tensor = isinstance(part, Tensor)
        told.update(repr((part.dtype, tuple(part.shape)) if is_tensor else part).encode())
        if is_tensor:
            told.update(part.detach().cpu().contiguous().numpy().tobytes())
    return told.hexdigest()


class StudyModel:
    """The models of a study: of its objectives, with numbers and comparisons, of where trials work, and constraints."""

    def __init__(self, data: StudyData, space: SearchSpace, fits: Fits) -> None:
        self.data, self.space = data, space
        transformed = data.power_transformed()
        objectives = [transformed.observed(j) for j in range(data.numbers.shape[-1])]
        failed = data.observed_validity() if bool((data.valid == 0).any()) else None
        constraints = [data.observed_constraint(k) for k in range(data.constraints.shape[-1])]
        self.fits: list[StoredFit] = []
        with fits.of(space, data.fits) as fitted:

            def of(known: Observed | None, function: str) -> list[SkewGP]:
                if known is None:
                    return []
                model, fit = fitted(known, function)
                self.fits.append(fit)
                return [model]

            each = enumerate(objectives if all(objectives) else [])
            self.objectives = [model for j, known in each for model in of(known, f"objective {j}")]
            self.validity = next(iter(of(failed, "validity")), None)
            self.constraints = [model for k, known in enumerate(constraints) for model in of(known, f"constraint {k}")]

    def acquisition(self, seed: int, X_pending: Tensor) -> AcquisitionFunction | None:
        """What the next point maximises: the log expected improvement over the best of the points that met all
        constraints (of several objectives, of the hypervolume), weighted by the probabilities that the trial works and
        meets them. Without such points, these probabilities alone; `None` if there are none either.
        """
        terms: list[AcquisitionFunction] = []
        baseline = self._baseline()
        if self.objectives and len(baseline):
            terms.append(self._improvement(baseline, X_pending, seed))
        if self.validity is not None:
            validity = self.validity
            if not terms and len(X_pending):  # nothing else tells these from other points: they are taken to fail
                failures = Validity(torch.zeros(len(X_pending), dtype=torch.bool))
                validity = validity.condition_on_observations(X_pending, failures)
            terms.append(LogProbabilityOfValidity(validity))
        terms += [SkewLogProbabilityOfImprovement(model, best_f=0.0, maximize=False) for model in self.constraints]
        return WeightedImprovement(*terms, X_baseline=baseline if len(baseline) else self.data.X) if terms else None

    def _baseline(self) -> Tensor:
        """The points that a new one must improve on: in a preferential study, the compared ones among those that it
        will be compared with; in others, all points with data.
        """
        data = self.data
        known = data.feasible & data.known
        shown = known & data.shown
        return data.X[shown if shown.any() else known]

    def _improvement(self, baseline: Tensor, X_pending: Tensor, seed: int) -> AcquisitionFunction:
        pending = X_pending if len(X_pending) else None
        if len(self.objectives) == 1:
            (model,) = self.objectives
            return log_improvement(model, baseline, pending, seed)
        models = ModelList(*self.objectives)
        weights = torch.eye(len(self.objectives), dtype=baseline.dtype)
        reference = plausible_reference_point(models, torch.cat([baseline, self.space.domain.spread(256)]), weights)
        with without_compilation():
            return qLogNoisyExpectedHypervolumeImprovement(
                models, reference, baseline, X_pending=pending, prune_baseline=True, cache_root=False
            )


def covar_module(space: SearchSpace, observations: list[Observation]) -> Kernel:
    """The default kernel of the observations, times one of the categories, between whose functions the correlation is
    one half at the mode of the prior: what is learned in one says something of another.
    """
    if all(entry.tells_validity for entry in observations):
        observations = []  # searches that weigh by what fails end higher with the prior of labels
    scaled = default_covar_module(space.dim, observations)
    categorical = list(space.cat_dims)
    if not categorical:
        return scaled
    prior, count = scaled.base_kernel.lengthscale_prior, len(categorical)
    # CategoricalKernel averages over parameters and divides by its lengthscale
    mode, spread = -1 / (count * math.log(CORRELATION)), float(prior.scale)
    categories = CategoricalKernel(
        ard_num_dims=count,
        active_dims=categorical,
        lengthscale_prior=LogNormalPrior(math.log(mode) + spread**2, spread),
        lengthscale_constraint=GreaterThan(1e-3, transform=None, initial_value=mode),
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
