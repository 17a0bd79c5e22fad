"""Fitted models of several kinds, each with what acquisition functions want besides a model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, PairwiseGP, SingleTaskGP
from botorch.models.model import Model, ModelList
from botorch.models.pairwise_gp import PairwiseLaplaceMarginalLogLikelihood
from botorch.models.transforms.input import InputPerturbation, InputTransform
from gpytorch.means import ConstantMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import NormalPrior
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import MomentMatchedModel, SkewPrior
from botorch_skewgp.models.defaults import default_covar_module
from botorch_skewgp.observations import Binary, Numeric, Observation, Preference
from botorch_skewgp.transformed import BayesianTransformedGP
from botorch_skewgp.truncated.draws import DrawSettings

DIM = 2
NUM_POINTS = 10
NUM_PERTURBATIONS = 3
DRAWS = DrawSettings(num_draws=256, seed=2)
FIT_STEPS = 10


def tensor(x) -> Tensor:
    return torch.tensor(x, dtype=torch.float64)


@dataclass(frozen=True)
class Case:
    """A kind of SkewGP, or one of BoTorch's own models for comparison."""

    name: str

    @property
    def fantasies_are_duels(self) -> bool:
        """Whether a fantasy is a comparison, which needs two points."""
        return self.name == "preference"

    @property
    def is_gaussian(self) -> bool:
        """Whether posteriors are Gaussian to begin with."""
        return self.name in ("SingleTaskGP", "PairwiseGP")

    def make(self, objective: int, transform: InputTransform | None) -> Model:
        """A model of one of two objectives."""
        other = OTHERS.get(self.name)
        return _skew_gp(self.name, objective, transform) if other is None else other(objective, transform)

    @cached_property
    def train_X(self) -> Tensor:
        return points()

    @cached_property
    def bounds(self) -> Tensor:
        return tensor([[0.0] * DIM, [1.0] * DIM])

    @cached_property
    def model(self) -> Model:
        return self.make(0, None).eval()

    @cached_property
    def objectives(self) -> ModelList:
        """Two models of two functions, as one with two outputs."""
        return ModelList(self.model, self.make(1, None).eval())

    @cached_property
    def gaussian(self) -> Model:
        """The model for functions that are Gaussian by construction."""
        return self.model if self.is_gaussian else MomentMatchedModel(self.model)

    @cached_property
    def gaussian_objectives(self) -> Model:
        if self.name == "SingleTaskGP":
            return ModelListGP(*self.objectives.models)
        return self.objectives if self.is_gaussian else MomentMatchedModel(self.objectives)

    def _perturbed(self, objective: int) -> Model:
        transform = InputPerturbation(perturbation_set=tensor([[0.0, 0.0], [0.2, -0.1], [-0.1, 0.3]])).eval()
        return self.make(objective, transform).eval()

    @cached_property
    def perturbed(self) -> Model:
        """The model with random inputs."""
        return self._perturbed(0)

    @cached_property
    def perturbed_objectives(self) -> ModelList:
        return ModelList(self.perturbed, self._perturbed(1))

    @cached_property
    def means(self) -> Tensor:
        """The posterior means of both objectives at the training points, `n x 2`."""
        return self.objectives.posterior(self.train_X).mean.detach()

    @cached_property
    def best_f(self) -> float:
        return float(self.means[:, 0].max())

    @cached_property
    def ref_point(self) -> Tensor:
        return self.means.amin(0) - 0.1


def points() -> Tensor:
    return torch.rand(NUM_POINTS, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


def values(objective: int) -> Tensor:
    """Noisy values of one of two functions at the points."""
    X = points()
    f = torch.sin(4 * X[:, 0]) + X[:, 1] if objective == 0 else torch.cos(3 * X[:, 1]) - X[:, 0]
    noise = torch.randn(NUM_POINTS, dtype=torch.float64, generator=torch.Generator().manual_seed(6 + objective))
    return f - f.mean() + 0.1 * noise


def duels(objective: int) -> Tensor:
    """Every point against the next, winner first."""
    y = values(objective)
    first, second = torch.arange(NUM_POINTS), (torch.arange(NUM_POINTS) + 1) % NUM_POINTS
    wins = (y[first] > y[second]).unsqueeze(-1)
    return torch.where(wins, torch.stack([first, second], -1), torch.stack([second, first], -1))


def observations(kind: str, objective: int) -> Observation | list[Observation]:
    y = values(objective)
    if kind == "preference":
        return Preference(duels(objective))
    if kind == "binary":
        return Binary((y > 0).long())
    if kind == "mixed":
        seen = torch.tensor([0, 3, 6, 9])
        return [Numeric(y[seen], index=seen), Preference(duels(objective))]
    return Numeric(y)


def _skew_gp(kind: str, objective: int, transform: InputTransform | None, fitted: bool = True) -> SkewGP:
    prior = None
    if kind == "skew prior":
        prior = SkewPrior(tensor([[0.2, 0.8], [0.7, 0.3]]), tensor([1.0, -1.0]), truncation=0.3)
    # a kernel and a mean whose hyperparameters stay moderate: functions are checked, not defaults
    of_mean = NormalPrior(0.0, 10.0**0.5) if kind in ("preference", "binary") else None
    model = SkewGP(
        points(),
        observations(kind, objective),
        covar_module=default_covar_module(DIM),
        mean_module=ConstantMean(of_mean),
        skew_prior=prior,
        input_transform=transform,
        draw_settings=DRAWS,
    )
    if fitted:
        model.load_state_dict(_fitted_state(kind, objective), strict=False)
    return model


@cache
def _fitted_state(kind: str, objective: int) -> dict[str, Tensor]:
    model = _skew_gp(kind, objective, None, fitted=False)
    _fit(SkewGPMarginalLogLikelihood(model.likelihood, model))
    return model.state_dict()


def _fit(mll) -> None:
    # a few steps are enough here: L-BFGS says that it did not converge
    fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"maxiter": FIT_STEPS}}, warning_handler=lambda w: True)


def _single_task_gp(objective: int, transform: InputTransform | None) -> SingleTaskGP:
    model = SingleTaskGP(points(), values(objective).unsqueeze(-1), input_transform=transform)
    _fit(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def _pairwise_gp(objective: int, transform: InputTransform | None) -> PairwiseGP:
    model = PairwiseGP(points(), duels(objective), input_transform=transform)
    _fit(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
    return model


def _transformed_gp(objective: int, transform: InputTransform | None) -> BayesianTransformedGP:
    """A transformed process with few nodes, all of whose outcomes have a mean and a variance."""
    few = {"num_nodes": 16, "least_effective": 0.0, "num_restarts": 2, "num_moments": 2}
    return BayesianTransformedGP(points(), values(objective).unsqueeze(-1), input_transform=transform, **few)


KINDS = ("preference", "binary", "mixed", "skew prior")
OTHERS = {"BayesianTransformedGP": _transformed_gp, "PairwiseGP": _pairwise_gp, "SingleTaskGP": _single_task_gp}
case = cache(Case)
