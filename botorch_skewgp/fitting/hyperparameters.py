r"""Hyperparameters sampled instead of optimised.

.. [Duane1987hybrid] S. Duane, A. D. Kennedy, B. J. Pendleton, D. Roweth. Hybrid Monte Carlo. Physics Letters B 195,
   1987.
.. [Hoffman2014nuts] M. D. Hoffman, A. Gelman. The No-U-Turn sampler. JMLR 15, 2014.
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import NamedTuple

import torch
from torch import Tensor
from tqdm.auto import tqdm

from botorch_skewgp.fitting.hamiltonian import HamiltonianSampler, HamiltonianState, StepSize, laplace_root
from botorch_skewgp.fitting.unbounded_density import UnboundedDensity
from botorch_skewgp.mlls.base import RowMarginalLogLikelihood
from botorch_skewgp.models.fully_bayesian import FullyBayesianSkewGP
from botorch_skewgp.truncated.diagnostics import effective_sample_size
from botorch_skewgp.truncated.draws import DrawSettings


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
        ValueError: If a number of draws or trajectories is out of range.
    """
    if num_draws < 1 or warmup < 0 or thinning < 1:
        raise ValueError("num_draws and thinning must be positive, and warmup must not be negative.")
    generator = torch.Generator().manual_seed(0) if generator is None else generator
    mll = deepcopy(mll).train()
    mll.is_exact = True  # a density for all of the chain
    mll.reset()
    density = UnboundedDensity(mll)
    start = density.coordinates()
    state = HamiltonianState(start, *density(start))
    sampler, step_size = HamiltonianSampler(density, laplace_root(density, state)), StepSize()
    kept, acceptance = [], 0.0
    total = warmup + num_draws * thinning
    for i in tqdm(range(total), desc="hyperparameters", disable=not progress, leave=False):
        learning = i < warmup
        step = math.exp(step_size.log_step if learning else step_size.log_average)
        state, info = sampler.step(state, step, generator)
        if learning:
            step_size = step_size.adapt(info.acceptance)
            continue
        acceptance += info.acceptance / (total - warmup)
        if (i - warmup + 1) % thinning == 0:
            kept.append(state)
    draws = torch.stack([state.position for state in kept])
    states = [density.state_dict(position) for position in draws]
    log_density = torch.stack([state.log_density for state in kept])
    size = float(effective_sample_size(draws.unsqueeze(-2), kind="mean").min()) if num_draws >= 8 else math.nan
    return HyperparameterDraws(density.values(draws), states, log_density, size, acceptance)


def fit_fully_bayesian_skew_gp(
    mll: RowMarginalLogLikelihood,
    num_draws: int = 16,
    warmup: int = 16,
    thinning: int = 2,
    draw_settings: DrawSettings | None = None,
    generator: torch.Generator | None = None,
    progress: bool = False,
) -> FullyBayesianSkewGP:
    r"""Draw hyperparameters and build a member of an ensemble for each; see `sample_hyperparameters`.

    Example:
        >>> mll = fit_skew_gp(model)
        >>> ensemble = fit_fully_bayesian_skew_gp(mll, num_draws=16)
        >>> acquisition = qLogExpectedImprovement(ensemble, best_f=0.0)

    Args:
        mll: The objective of a fitted model.
        num_draws: The number of members.
        warmup: As in `sample_hyperparameters`.
        thinning: As in `sample_hyperparameters`.
        draw_settings: How each member draws its rows; by default 256 draws, of which the ensemble has many times.
        generator: The source of randomness.
        progress: Whether to show a progress bar.

    Raises:
        UnsupportedError: If no free parameter has a prior.
        ValueError: If a number of draws or trajectories is out of range.
    """
    draws = sample_hyperparameters(mll, num_draws, warmup, thinning, generator, progress)
    members = []
    for i, state in enumerate(draws.states):
        member = deepcopy(mll.model)
        member.load_state_dict(state, strict=False)
        member.draw_settings = DrawSettings(num_draws=256, seed=i) if draw_settings is None else draw_settings
        members.append(member.eval())
    return FullyBayesianSkewGP(members)
