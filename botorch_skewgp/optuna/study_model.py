"""SkewGPs of what a study knows, and acquisition functions of them."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Mapping, Sequence

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelList
from botorch.models.kernels import CategoricalKernel
from botorch.models.transforms.outcome import Standardize
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from botorch_skewgp.acquisition import LogProbabilityOfValidity, SkewLogProbabilityOfImprovement
from botorch_skewgp.acquisition.mixed_search import MixedSearch
from botorch_skewgp.acquisition.reference_point import plausible_reference_point
from botorch_skewgp.hosts.data import Observed, observed, text_of
from botorch_skewgp.hosts.improvement import WeightedImprovement, feasible_mean, log_improvement
from botorch_skewgp.hosts.quiet import without_compilation
from botorch_skewgp.likelihoods.registry import default_likelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewGP
from botorch_skewgp.models.defaults import default_covar_module
from botorch_skewgp.observations import Observation, Validity
from botorch_skewgp.optuna.search_space import SearchSpace
from botorch_skewgp.optuna.study_data import StoredFit, StudyData
from botorch_skewgp.optuna.turns import seeded
from botorch_skewgp.parameters import LogarithmPrior
from botorch_skewgp.truncated.draws import DrawSettings

LEVELS = (0.05, 0.5, 0.95)  # of quantiles
NUM_DRAWS = 512  # of the rows
GROWTH = 1.2  # of the number of points, after which hyperparameters are fitted again
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

    def __reduce__(self) -> tuple[type[Fits], tuple[int]]:
        """Models are neither copied nor pickled."""
        return Fits, (self._seed,)

    def models(
        self, space: SearchSpace, functions: Mapping[str, Observed], stored: Sequence[StoredFit] = ()
    ) -> dict[str, tuple[SkewGP, StoredFit]]:
        """The model of each function, and what to store of its fit; models of other data are dropped."""
        models, used = {}, dict[str, SkewGP]()
        with self._lock:
            for function, known in functions.items():
                data, num_points = _digest(space, known), len(known.X)
                of_same_data = [fit for fit in stored if fit.data == data]
                of_function = [fit for fit in stored if fit.function == function and fit.has_ended]
                last = next(reversed(of_same_data or of_function), None)
                start, size = (None, num_points) if last is None else (last.values, last.num_points)
                has_grown = not size <= num_points < GROWTH * size
                is_kept = bool(of_same_data) or (last is not None and not has_grown)
                model = self._kept.get(data) or used.get(data)
                if model is None:
                    model = fitted_model(known, space, start=start, is_kept=is_kept, seed=self._seed)
                used[data] = model
                values = parameters_to_vector(model.parameters()).tolist()
                if not (is_kept and values == start):
                    size = num_points
                models[function] = model, StoredFit(function, data, values, size)
            self._kept = used
        return models


def fitted_model(
    known: Observed,
    space: SearchSpace,
    kinds: Sequence[type[Observation]] = (),
    start: Sequence[float] | None = None,
    is_kept: bool = False,
    seed: int = 0,
) -> SkewGP:
    """A model of one function whose hyperparameters are fitted, from given ones on if there are any, or are those.

    Of failures and successes, of which a search wants probabilities, the posterior is that of expectation propagation;
    of failures alone this is too broad to tell tried points from others.
    """
    is_validity = all(isinstance(entry, Validity) and entry.valid.any() for entry in known.observations)
    model = SkewGP(
        known.X,
        known.observations,
        default_likelihood(known.observations, kinds) if kinds else None,
        covar_module=covar_module(space, known.observations),
        outcome_transform=Standardize(m=1),
        draw_settings=DrawSettings(num_draws=NUM_DRAWS),
        approximation="ep" if is_validity else None,
    )
    own = parameters_to_vector(model.parameters())
    is_given = start is not None and len(start) == len(own)
    if is_given:
        vector_to_parameters(own.new_tensor(start), model.parameters())
    with seeded(seed):
        if not (is_given and is_kept):
            mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
            fit_gpytorch_mll(mll, optimizer_kwargs={"options": FIT_OPTIONS})
    model.eval()
    with seeded(seed):
        model.latent_posterior(known.X[:1])  # makes the draws
    return model


def _digest(space: SearchSpace, known: Observed) -> str:
    """A text that differs for other data and search spaces."""
    text = text_of(known.X, known.observations, list(space.distributions.items()))
    return hashlib.sha256(text.encode()).hexdigest()


class StudyModel:
    """The models of a study: of its objectives, with numbers and comparisons, of where trials work, and constraints."""

    def __init__(self, data: StudyData, space: SearchSpace, fits: Fits) -> None:
        self.data, self.space = data, space
        objectives = {f"objective {j}": data.observed(j) for j in range(data.numbers.shape[-1])}
        constraints = {f"constraint {k}": observed(data.X, numbers) for k, numbers in enumerate(data.constraints.mT)}
        functions = dict(objectives) if all(objectives.values()) else {}
        if bool((data.valid == 0).any()):
            functions["validity"] = observed(data.X, data.valid, Validity)
        functions |= constraints
        known = {name: each for name, each in functions.items() if each is not None}
        models = fits.models(space, known, data.fits)
        self.fits = [fit for _, fit in models.values()]
        self.objectives = [models[name][0] for name in objectives if name in models]
        self.validity = [models[name][0] for name in ("validity",) if name in models]
        self.constraints = [models[name][0] for name in constraints if name in models]

    def acquisition(self, seed: int, X_pending: Tensor, against: float | None = None) -> AcquisitionFunction | None:
        """What the next point maximises: the log expected improvement over the best of the points that met all
        constraints (of several objectives, of the hypervolume), or over the trial that it is `against`, weighted by the
        probabilities that the trial works and meets them. Without such points, these probabilities alone; `None` if
        there are none either.
        """
        terms: list[AcquisitionFunction] = []
        champion = [row for row, number in enumerate(self.data.trials) if number == against]
        baseline = self.data.X[champion] if champion else self._baseline()
        if self.objectives and len(baseline):
            terms.append(self._improvement(baseline, X_pending, seed))
        # where nothing else keeps new points away from pending ones, these are taken to fail
        terms += self._log_probabilities(X_pending[:0] if terms else X_pending)
        if not terms:
            return None
        seen = baseline if len(baseline) else self.data.X
        return WeightedImprovement(*terms, X_baseline=seen, process=self.space.domain.neutralized)

    def _log_probabilities(self, X_failed: Tensor) -> list[AcquisitionFunction]:
        """The logarithms of the probabilities that a trial works, and meets each constraint."""
        terms: list[AcquisitionFunction] = []
        for validity in self.validity:
            if len(X_failed):
                failures = Validity(torch.zeros(len(X_failed), dtype=torch.bool))
                validity = validity.condition_on_observations(X_failed, failures)
            terms.append(LogProbabilityOfValidity(validity))
        return terms + [SkewLogProbabilityOfImprovement(model, 0.0, maximize=False) for model in self.constraints]

    def best_point(self, seed: int) -> Tensor:
        """The point, `d`, of the largest posterior mean of a single objective among those likely to be feasible."""
        (model,) = self.objectives
        seen, domain = self.data.X, self.space.domain
        mean = feasible_mean(
            PosteriorMean(model), self._log_probabilities(seen[:0]), X_baseline=seen, process=domain.neutralized
        )
        found = MixedSearch(mean, domain, torch.Generator().manual_seed(seed), may_repeat=True).best_point(seen)
        # a point tried may be better than the end of a search
        inside = seen[((domain.bounds[0] <= seen) & (seen <= domain.bounds[1])).all(-1)]
        points = torch.cat([found.unsqueeze(0), inside])
        with torch.no_grad():
            return points[mean(points.unsqueeze(1)).argmax()]

    @torch.no_grad()
    def outlook(self, point: Tensor) -> tuple[list[float], float]:
        """Quantiles of a single objective at a point, as a study counts it, and the probability that a trial works and
        meets all constraints.
        """
        (model,) = self.objectives
        levels = point.new_tensor(LEVELS)
        values = model.posterior(point.unsqueeze(0)).quantile(levels).flatten().numpy()
        terms = self._log_probabilities(self.data.X[:0])
        log_probability = sum(float(term(point.view(1, 1, -1))) for term in terms)
        return self.data.power_transform.inverse_transform(values).tolist(), math.exp(log_probability)

    def _baseline(self) -> Tensor:
        """The points to improve on: those with data, and in a preferential study those of them that are shown."""
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
    one half at the mode of the prior: what is learned in one is informative of another.
    """
    if all(entry.tells_validity for entry in observations):
        observations = []  # searches that weigh by what fails end higher with the prior of labels
    scaled = default_covar_module(space.dim, observations)
    if not space.categorical:
        return scaled
    prior, count = scaled.base_kernel.lengthscale_prior, len(space.categorical)
    # CategoricalKernel averages over parameters and divides by its lengthscale
    mode, spread = -1 / (count * math.log(CORRELATION)), float(prior.scale)
    categories = CategoricalKernel(
        ard_num_dims=count,
        active_dims=space.categorical,
        lengthscale_prior=LogarithmPrior(math.log(mode), spread),
        lengthscale_constraint=GreaterThan(1e-3, transform=None, initial_value=mode),
    )
    numeric = [i for i in range(space.dim) if i not in space.categorical]
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
