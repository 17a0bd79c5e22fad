r"""Hyperparameters sampled instead of optimised: an ensemble of SkewGPs, one for each draw of the hyperparameters.

.. [Duane1987hybrid] S. Duane, A. D. Kennedy, B. J. Pendleton, D. Roweth. Hybrid Monte Carlo. Physics Letters B 195,
   1987.
.. [Hoffman2014nuts] M. D. Hoffman, A. Gelman. The No-U-Turn sampler. JMLR 15, 2014.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, NamedTuple, Self

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.posteriors.fully_bayesian import MCMC_DIM
from gpytorch.constraints import Interval
from linear_operator.operators import to_linear_operator
from linear_operator.utils.errors import NotPSDError
from torch import Tensor
from torch.distributions import Bernoulli, Categorical
from tqdm.auto import tqdm

from botorch_skewgp.mlls.base import RowMarginalLogLikelihood, log_prior
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.observations import Observation
from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.truncated.diagnostics import effective_sample_size
from botorch_skewgp.truncated.draws import DrawSettings

# In units of the Laplace approximation's standard deviations. Half of pi would be enough in a Gaussian; the posterior's
# tails, where lengthscales no longer matter, are wider than what the mode shows.
TRAJECTORY = math.pi
FIRST_STEP = 0.7
MAX_LEAPFROG_STEPS = 8
TARGET_ACCEPTANCE = 0.65
HESSIAN_STEP = 0.05  # in logarithms of parameters
MOST_SPREAD = 2.0  # likewise


class HyperparameterDraws(NamedTuple):
    r"""Draws of the hyperparameters' posterior.

    Args:
        values: For each parameter that has a prior, by its name in the model, a `num_draws x ...` tensor of values in
            units of the constrained parameter (a lengthscale, not its raw value).
        states: A list of state dicts of parameters, to be loaded into the model with `strict=False`.
        log_density: The objective at the draws, `num_draws`.
        effective_size: The least effective sample size over parameters.
        acceptance: The average probability of acceptance after warm-up.
    """

    values: dict[str, Tensor]
    states: list[dict[str, Tensor]]
    log_density: Tensor
    effective_size: float
    acceptance: float


class _Density:
    """The objective over unbounded coordinates of the parameters that have priors, with its gradient."""

    def __init__(self, mll: RowMarginalLogLikelihood) -> None:
        self.mll = mll
        model = mll.model
        constraints = {name: constraint for name, _, constraint in model.named_parameters_and_constraints()}  # type: ignore[operator]
        named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        prior = log_prior(model)
        gradients: Sequence[Tensor | None] = [None] * len(named)
        if isinstance(prior, Tensor) and prior.requires_grad:
            gradients = torch.autograd.grad(prior, [p for _, p in named], allow_unused=True)
        self.parameters = {n: p for (n, p), g in zip(named, gradients, strict=True) if g is not None}
        if not self.parameters:
            raise UnsupportedError(
                "No hyperparameter that is to be learned has a prior; register priors, or fit the model instead."
            )
        self.constraints = {name: constraints[name] for name in self.parameters}
        self.sizes = [p.numel() for p in self.parameters.values()]

    def coordinates(self) -> Tensor:
        """The present values in unbounded coordinates."""
        parts = []
        for name, parameter in self.parameters.items():
            value = _constrained(self.constraints[name], parameter.detach().double())
            parts.append(_to_unbounded(self.constraints[name], value).flatten())
        return torch.cat(parts)

    def values(self, x: Tensor) -> dict[str, Tensor]:
        """Values of the constrained parameters at unbounded coordinates `... x k`."""
        parts = zip(self.parameters.items(), x.split(self.sizes, dim=-1), strict=True)
        return {
            name: _from_unbounded(self.constraints[name], part)[0].unflatten(-1, p.shape or (1,))
            for (name, p), part in parts
        }

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The log density of the coordinates and its gradient; `-inf` where the prior has no Cholesky factor."""
        x = x.detach().requires_grad_(True)
        log_volume, raws = x.new_zeros(()), []
        for (name, parameter), part in zip(self.parameters.items(), x.split(self.sizes), strict=True):
            constraint = self.constraints[name]
            value, log_slope = _from_unbounded(constraint, part)
            raw = value if constraint is None else constraint.inverse_transform(value)
            raws.append(raw)
            parameter.data.copy_(raw.detach().view(parameter.shape))
            log_volume = log_volume + log_slope.sum()
        model = self.mll.model
        try:
            objective = self.mll(model(*model.train_inputs), model.train_targets)
        except NotPSDError:
            return x.new_tensor(-torch.inf), torch.zeros_like(x)
        slopes = torch.autograd.grad(objective, list(self.parameters.values()))
        gradient = torch.autograd.grad(
            [*raws, log_volume],
            x,
            [
                *(slope.to(raw).view_as(raw) for slope, raw in zip(slopes, raws, strict=True)),
                torch.ones_like(log_volume),
            ],
        )[0]
        return (objective + log_volume).detach().double(), gradient


def _constrained(constraint: Interval | None, raw: Tensor) -> Tensor:
    return raw if constraint is None else constraint.transform(raw)


def _bounds(constraint: Interval | None, like: Tensor) -> tuple[Tensor, Tensor]:
    if constraint is None:
        return like.new_tensor(-torch.inf), like.new_tensor(torch.inf)
    return constraint.lower_bound.to(like), constraint.upper_bound.to(like)


def _to_unbounded(constraint: Interval | None, value: Tensor) -> Tensor:
    """Logarithm of the distance to a single bound, logit between two."""
    lower, upper = _bounds(constraint, value)
    if lower.isinf() and upper.isinf():
        return value
    if upper.isinf():
        return (value - lower).log()
    if lower.isinf():
        return (upper - value).log()
    return torch.logit((value - lower) / (upper - lower))


def _from_unbounded(constraint: Interval | None, x: Tensor) -> tuple[Tensor, Tensor]:
    """The value at unbounded coordinates and the logarithm of its slope."""
    lower, upper = _bounds(constraint, x)
    if lower.isinf() and upper.isinf():
        return x, 0 * x  # with a graph, as in the other cases
    if upper.isinf():
        return lower + x.exp(), x
    if lower.isinf():
        return upper - x.exp(), x
    log_slope = (upper - lower).log() + torch.nn.functional.logsigmoid(x) + torch.nn.functional.logsigmoid(-x)
    return lower + (upper - lower) * torch.sigmoid(x), log_slope


def sample_hyperparameters(
    mll: RowMarginalLogLikelihood,
    num_draws: int = 16,
    warmup: int = 16,
    thinning: int = 2,
    generator: torch.Generator | None = None,
    progress: bool = False,
) -> HyperparameterDraws:
    r"""Draw hyperparameters from their posterior by Hamiltonian Monte Carlo ([Duane1987hybrid]_).

    The density is `exp(mll)`: with `SkewGPMarginalLogLikelihood` the evidence by expectation propagation times the
    priors. The chain starts at the model's present hyperparameters, whose Laplace approximation makes the scales of all
    directions alike; fit the model first. Steps are taken in logarithms of positive parameters. Their size is learned
    during warm-up (dual averaging, [Hoffman2014nuts]_, section 3.2); trajectories have random lengths. Parameters
    without a prior, whose posterior may be improper, stay where they are. Priors are taken to be densities of the
    constrained value, as GPyTorch's modules register them. The model is left as it was.

    Args:
        mll: A deterministic objective.
        num_draws: The number of draws to keep.
        warmup: The number of trajectories before the first draw.
        thinning: One in how many trajectories is kept.
        generator: The source of randomness; one seeded with 0 is made if `None`.
        progress: Whether to show a progress bar.

    Raises:
        UnsupportedError: If no free parameter has a prior.
    """
    if num_draws < 1 or warmup < 0 or thinning < 1:
        raise ValueError("num_draws and thinning must be positive, and warmup must not be negative.")
    generator = torch.Generator().manual_seed(0) if generator is None else generator
    was_training = mll.training
    before = deepcopy(mll.state_dict())
    mll.train()
    mll.model._sites = None  # where expectation propagation starts, so that runs repeat to the last bit
    density = _Density(mll)
    chain = _Chain(density, density.coordinates(), generator)
    kept, log_densities, acceptance = [], [], 0.0
    states = []
    total = warmup + num_draws * thinning
    for i in tqdm(range(total), desc="hyperparameters", disable=not progress, leave=False):
        probability = chain.move(adapt=i < warmup)
        if i < warmup:
            continue
        acceptance += probability / (total - warmup)
        if (i - warmup + 1) % thinning == 0:
            kept.append(chain.x)
            log_densities.append(chain.log_density)
            density(chain.x)  # writes the parameters
            states.append({name: p.detach().clone() for name, p in density.parameters.items()})
    mll.load_state_dict(before)
    mll.train(was_training)
    draws = torch.stack(kept)
    size = float(effective_sample_size(draws.unsqueeze(-2), kind="mean").min()) if num_draws >= 8 else math.nan
    return HyperparameterDraws(density.values(draws), states, torch.stack(log_densities), size, acceptance)


class _Chain:
    """Hamiltonian Monte Carlo in coordinates that the Laplace approximation at the start makes nearly standard."""

    def __init__(self, density: _Density, x: Tensor, generator: torch.Generator) -> None:
        self.density, self.generator = density, generator
        self.x = x
        self.log_density, self.gradient = density(x)
        self.root = _laplace_root(density, x, self.gradient)
        self.log_step, self.log_step_mean = math.log(FIRST_STEP), math.log(FIRST_STEP)
        self.anchor, self.error, self.count = math.log(2 * FIRST_STEP), 0.0, 0

    def _uniform(self) -> float:
        return float(torch.rand((), generator=self.generator, dtype=torch.float64))

    def move(self, adapt: bool) -> float:
        """One trajectory; returns its probability of acceptance."""
        step = math.exp(self.log_step if adapt else self.log_step_mean)
        length = TRAJECTORY * (0.5 + self._uniform())
        num_steps = min(max(round(length / step), 1), MAX_LEAPFROG_STEPS)
        velocity = torch.randn(self.x.shape, generator=self.generator, dtype=self.x.dtype).to(self.x)
        x, log_density, gradient = self.x, self.log_density, self.gradient
        energy = log_density - 0.5 * velocity.square().sum()
        for _ in range(num_steps):
            velocity = velocity + 0.5 * step * self.root.mT @ gradient
            x = x + step * self.root @ velocity
            log_density, gradient = self.density(x)
            if not bool(log_density.isfinite()):
                break
            velocity = velocity + 0.5 * step * self.root.mT @ gradient
        change = float(log_density - 0.5 * velocity.square().sum() - energy)
        probability = math.exp(min(change, 0.0)) if math.isfinite(change) else 0.0
        if self._uniform() < probability:
            self.x, self.log_density, self.gradient = x, log_density, gradient
        if adapt:
            self.count += 1
            weight = 1 / (self.count + 10)
            self.error = (1 - weight) * self.error + weight * (TARGET_ACCEPTANCE - probability)
            self.log_step = self.anchor - math.sqrt(self.count) / 0.05 * self.error
            rate = self.count**-0.75
            self.log_step_mean = rate * self.log_step + (1 - rate) * self.log_step_mean
        return probability


def _laplace_root(density: _Density, x: Tensor, gradient: Tensor) -> Tensor:
    """The symmetric root of the inverse of the negative Hessian at a point, by differences of the gradient.

    Away from a mode the Hessian may have any sign: its eigenvalues are taken as absolute values, and standard
    deviations are limited, as the density is far from normal where it is flat.
    """
    steps = HESSIAN_STEP * torch.eye(len(x)).to(x)
    hessian = torch.stack([density(x + step)[1] - gradient for step in steps]) / HESSIAN_STEP
    eigenvalues, vectors = torch.linalg.eigh(0.5 * (hessian + hessian.mT))
    return vectors * eigenvalues.abs().rsqrt().clamp(max=MOST_SPREAD) @ vectors.mT


class SkewGPEnsemblePosterior(SkewGPPosterior):
    r"""The posteriors of an ensemble as one batch, whose last dimension is the member: `batch_shape x E x q x o`.

    BoTorch's acquisition functions average over the members. The equally weighted mixture of all members is at hand as
    `mixture_mean`, `mixture_variance` and `mixture_cdf`, by the names of BoTorch's `GaussianMixturePosterior`.
    """

    @classmethod
    def stack(cls, posteriors: Sequence[SkewGPPosterior]) -> SkewGPEnsemblePosterior:
        r"""Put posteriors at the same points side by side.

        Args:
            posteriors: Posteriors of the same shapes.
        """
        batch_shape, first = posteriors[0].batch_shape, posteriors[0]
        if any(len(p.mixture.levels) > 1 for p in posteriors):
            raise UnsupportedError("Fantasies of an ensemble are not supported; make fantasies of its members.")

        def side_by_side(tensors: Sequence[Tensor], event_dims: int) -> Tensor:
            expanded = [t.expand(*batch_shape, *t.shape[t.ndim - event_dims :]) for t in tensors]
            return torch.stack(expanded, dim=-1 - event_dims)

        return cls(
            location=side_by_side([p._location for p in posteriors], 1),
            cross_covariance=side_by_side([p._crosses[0] for p in posteriors], 2),
            prior_covariance=side_by_side([to_linear_operator(p._prior).to_dense() for p in posteriors], 2),
            mixture=RepresenterMixture(
                weights=torch.stack([p.mixture.weights for p in posteriors]),
                root=torch.stack([p.mixture.root for p in posteriors]),
            ),
            num_outputs=first._num_outputs,
        )

    @property
    def mixture_mean(self) -> Tensor:
        """The mean of the mixture of all members, `batch_shape x q x o` without the members' dimension."""
        return self.mean.mean(MCMC_DIM)

    @property
    def mixture_variance(self) -> Tensor:
        """The variance of the mixture of all members."""
        return self.variance.mean(MCMC_DIM) + self.mean.var(MCMC_DIM, correction=0)

    def mixture_cdf(self, value: Tensor | float) -> Tensor:
        r"""The marginal probabilities `P(f <= value)` under the mixture of all members.

        Args:
            value: A number.
        """
        return self.cdf(value).mean(MCMC_DIM)


class FullyBayesianSkewGP(Model):
    r"""An ensemble of SkewGPs whose hyperparameters are draws of their posterior.

    Follows BoTorch's conventions for fully Bayesian models: posteriors have a batch dimension for the members before
    `q x o`, over which acquisition functions average. Small data need it: where many lengthscales are about as likely,
    the best one alone is too sure of itself.

    Example:
        >>> mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
        >>> fit_gpytorch_mll(mll)
        >>> ensemble = FullyBayesianSkewGP.sample(mll, num_draws=16)
        >>> acquisition = qLogExpectedImprovement(ensemble, best_f=0.0)
    """

    _is_fully_bayesian = True
    _is_ensemble = True

    def __init__(self, models: Sequence[SkewGP]) -> None:
        r"""
        Args:
            models: The members; of the same data.

        Raises:
            InputDataError: If there are none.
        """
        super().__init__()
        if not models:
            raise InputDataError("An ensemble needs at least one model.")
        self.models = torch.nn.ModuleList(models)

    @property
    def members(self) -> list[SkewGP]:
        """The members."""
        return list(self.models)  # type: ignore[arg-type]

    @classmethod
    def sample(
        cls,
        mll: RowMarginalLogLikelihood,
        num_draws: int = 16,
        warmup: int = 16,
        thinning: int = 2,
        draw_settings: DrawSettings | None = None,
        generator: torch.Generator | None = None,
        progress: bool = False,
    ) -> Self:
        r"""Draw hyperparameters and build a member for each; see `sample_hyperparameters`.

        Args:
            mll: The objective of a fitted model.
            num_draws: The number of members.
            warmup: As in `sample_hyperparameters`.
            thinning: As in `sample_hyperparameters`.
            draw_settings: How each member draws its rows; by default 256 draws, of which the ensemble has many times.
            generator: The source of randomness.
            progress: Whether to show a progress bar.
        """
        draws = sample_hyperparameters(mll, num_draws, warmup, thinning, generator, progress)
        members = []
        for i, state in enumerate(draws.states):
            member = deepcopy(mll.model)
            member.load_state_dict(state, strict=False)
            member.draw_settings = DrawSettings(num_draws=256, seed=i) if draw_settings is None else draw_settings
            members.append(member.eval())
        return cls(members)

    @property
    def num_outputs(self) -> int:
        """The number of outputs."""
        return self.members[0].num_outputs

    @property
    def batch_shape(self) -> torch.Size:
        """The number of members."""
        return torch.Size([len(self.models)])

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """The training points, which all members share."""
        return self.members[0].train_inputs

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> SkewGPEnsemblePosterior:
        r"""The posteriors of all members, `batch_shape x E x q x o`.

        Args:
            X: A `batch_shape x q x d` tensor.
            output_indices: As for a SkewGP.
            observation_noise: As for a SkewGP.
            posterior_transform: An affine posterior transform.
        """
        posteriors = []
        for member in self.members:
            posterior = member.posterior(X, output_indices, observation_noise, posterior_transform)
            if not isinstance(posterior, SkewGPPosterior):
                raise UnsupportedError(
                    f"{type(posterior_transform).__name__} is not affine; apply it to the posteriors of the members."
                )
            posteriors.append(posterior)
        return SkewGPEnsemblePosterior.stack(posteriors)

    def predictive(self, X: Tensor) -> Bernoulli | Categorical:
        r"""The distribution of new labels, grades or comparisons, averaged over members.

        Args:
            X: A `batch_shape x q x d` tensor.

        Raises:
            UnsupportedError: If the likelihood's predictions are not probabilities.
        """
        laws = [member.predictive(X) for member in self.members]
        if not all(isinstance(law, Bernoulli | Categorical) for law in laws):
            raise UnsupportedError("Averages are made of probabilities only; ask the members for other predictions.")
        return type(laws[0])(probs=torch.stack([law.probs for law in laws]).mean(0))

    def condition_on_observations(
        self, X: Tensor, Y: Tensor | Observation | Sequence[Observation], **kwargs: Any
    ) -> FullyBayesianSkewGP:
        r"""Every member with more data; hyperparameters stay as they are.

        Args:
            X: An `n' x d` tensor of new points.
            Y: Observations, as for a SkewGP.
            kwargs: As for a SkewGP.
        """
        return FullyBayesianSkewGP([member.condition_on_observations(X, Y, **kwargs) for member in self.members])

    def subset_output(self, idcs: list[int]) -> Self:
        """The ensemble itself as long as it has one output."""
        for member in self.members:
            member.subset_output(idcs)
        return self
