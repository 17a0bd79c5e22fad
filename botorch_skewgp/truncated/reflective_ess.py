r"""Linear elliptical slice sampling with reflections: exact Hamiltonian Monte Carlo of a truncated normal.

LIN-ESS [Gessner2020integrals]_ moves along an ellipse `x cos t + v sin t` through the current rows `x` and a fresh draw
`v` of the same Gaussian, and cuts it where a row leaves its bounds. Here the ellipse is followed for a fixed time
`horizon`, and where row `i` reaches a bound the velocity is reflected in the metric of `Gamma`,

    v <- v - 2 (v_i / Gamma_ii) Gamma[:, i],

which keeps `v' Gamma^-1 v` and turns `v_i` around. That is the exact Hamiltonian dynamics of [Pakman2014exact]_,
section 2, written in the coordinates of the rows, where it costs `O(m)` and needs no solve. There is no step size and
nothing is rejected. With `horizon = pi/2` an unhindered trajectory ends in an independent draw.

Times need no trigonometry. With `T = tan(t/2)`, the times at which `x cos t + v sin t = l` are the roots of
`(x + l) T^2 - 2 v T + (l - x) = 0`. At a root the velocity is `-+ D`, `D = sqrt(v^2 + x^2 - l^2)`, and the row falls
through `l` at `T = (v + D) / (x + l) = (x - l) / (D - v)`; of these forms one does not cancel. A row that has just
bounced has `v > 0`, and the first form then gives its next hit, so that no tolerance decides what counts as a hit.

.. [Gessner2020integrals]
    A. Gessner, O. Kanjilal, and P. Hennig. Integrals over Gaussians under Linear Domain Constraints. Proceedings of
    the 23rd International Conference on Artificial Intelligence and Statistics (AISTATS), PMLR 108, 2020.
.. [Pakman2014exact]
    A. Pakman and L. Paninski. Exact Hamiltonian Monte Carlo for Truncated Multivariate Gaussians. Journal of
    Computational and Graphical Statistics, 23(2):518-542, 2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from botorch_skewgp.exceptions import SamplingError, TooManyReflectionsError
from botorch_skewgp.truncated.factorization import times_transpose
from botorch_skewgp.truncated.sampler import Sampler, SamplerInfo, SamplerState
from botorch_skewgp.truncated.trajectories import choose_backend
from botorch_skewgp.truncated.trajectories.eager import EagerLowRankTrajectories, EagerTrajectories
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal, as_double

# A billiard between walls that are close makes many honest reflections; beyond this number it takes too long.
MOST_REFLECTIONS = 10**8
MOST_DENSE_ROWS = 12288  # rows of a low-rank root for which `Gamma` is built: 1.1 GiB
TIGHT = 1.0  # standard deviations beyond a bound, or one over those between bounds, from which on a row is named
# Velocities are drawn for many steps in one matrix product, but for no more than this many bytes at a time.
CHUNK_BYTES = 2**28


class ReflectiveEllipticalSliceSampler(Sampler):
    r"""Linear elliptical slice sampling with reflections (see this module's first lines).

    Dense covariance: a chain's position is `u - mean`, `p = m`. Low-rank root `F` (`m x r`): it is the white
    coordinates `(z, e)` of `u = mean + F z + sqrt(noise) e`, `p = r + m`, and an event costs `O(m r)`.

    All backends draw the same random numbers: from the same generator they give the same chains up to rounding.

    Example:
        >>> distribution = TruncatedNormal(mean, covariance, lower, upper, noise)
        >>> sampler = ReflectiveEllipticalSliceSampler(distribution)
        >>> state, positions, info = sampler.run(sampler.init(start), num_steps=100, generator=generator)
        >>> rows = sampler.rows(positions)
    """

    def __init__(self, distribution: TruncatedNormal, horizon: float = math.pi / 2, backend: str = "auto") -> None:
        r"""
        Args:
            distribution: The truncated normal to draw from.
            horizon: The length of a trajectory, in `(0, pi)`.
            backend: "auto", "eager", "numba" or "triton". "auto" takes numba on CPU and triton on CUDA where they are
                installed, and eager torch elsewhere. A low-rank covariance runs in numba for up to `MOST_DENSE_ROWS`
                rows, of which it builds `Gamma`, and in eager torch beyond and on CUDA.

        Raises:
            ImportError: If a backend that was asked for by name is not installed.
            ValueError: If `horizon` is out of range, or the backend is unknown or does not fit the distribution.
        """
        super().__init__(distribution)
        if not 0 < horizon < math.pi:
            raise ValueError(f"horizon must be between 0 and pi; got {horizon}.")
        self.horizon = horizon
        mean = distribution.mean
        # A row between two bounds is reflected about (velocity * horizon / width) times, which is many if it is narrow.
        widths = distribution.upper - distribution.lower
        scale = distribution.gamma_diagonal.sqrt()
        crossings = float((scale * horizon / widths).sum(-1).max())
        # A row that is z standard deviations in a tail falls back to its bound about z times.
        beyond = torch.maximum(distribution.lower - mean, mean - distribution.upper) / scale
        falls = float(beyond.clamp(min=0).sum(-1).max())
        plausible = 1000 * (distribution.num_rows + 10) + 10 * (crossings + falls)
        self.max_reflections = int(min(plausible, MOST_REFLECTIONS))
        lower, upper = self._flatten(distribution.lower - mean, 1), self._flatten(distribution.upper - mean, 1)
        if distribution.root is not None:
            if backend == "triton":
                raise ValueError("backend='triton' needs a dense covariance; use backend='auto' for a low-rank root.")
            self.backend = choose_backend(backend, mean.device)
            if self.backend == "triton" or (backend == "auto" and distribution.num_rows > MOST_DENSE_ROWS):
                self.backend = "eager"
            root, noise = self._flatten(distribution.root, 2), self._flatten(distribution.noise, 1)
            low_rank = (root, noise, lower, upper, horizon, self.max_reflections)
            self._trajectories: Callable[[Tensor, Tensor], tuple[Tensor, Tensor, float]]
            if self.backend == "numba":
                from botorch_skewgp.truncated.trajectories.numba_trajectories import NumbaLowRankTrajectories

                self._trajectories = NumbaLowRankTrajectories(*low_rank)
            else:
                self._trajectories = EagerLowRankTrajectories(*low_rank)
            return
        self.backend = choose_backend(backend, mean.device)
        cholesky, gamma = self._factor()
        self._cholesky = self._flatten(cholesky, 2)
        arguments = (self._flatten(gamma, 2), lower, upper, horizon, self.max_reflections)
        del gamma
        if self.backend == "numba":
            from botorch_skewgp.truncated.trajectories.numba_trajectories import NumbaTrajectories

            self._trajectories = NumbaTrajectories(*arguments)
        elif self.backend == "triton":
            from botorch_skewgp.truncated.trajectories.triton_trajectories import TritonTrajectories

            self._trajectories = TritonTrajectories(*arguments)
        else:
            self._trajectories = EagerTrajectories(*arguments)

    def _factor(self) -> tuple[Tensor, Tensor]:
        """Cholesky factor and covariance of velocities, factored in double precision."""
        distribution = as_double(self.distribution)
        cholesky = distribution.gamma_cholesky
        # Reflections have to keep the distribution of the velocities: if the factor has jitter, so has Gamma.
        variance = cholesky.square().sum(-1)
        covariance = distribution.dense_covariance.expand(*variance.shape, -1)
        gamma = torch.diagonal_scatter(covariance, variance, dim1=-2, dim2=-1)
        return cholesky.to(self.distribution.mean), gamma.to(self.distribution.mean)

    def _flatten(self, values: Tensor, event_dims: int) -> Tensor:
        """Expand to the batch shape and make it one dimension."""
        event = values.shape[values.dim() - event_dims :]
        return values.detach().expand(*self.distribution.batch_shape, *event).reshape(-1, *event)

    def _align(self, values: Tensor, positions: Tensor) -> Tensor:
        """View `batch_shape x m` values so that they broadcast with `batch_shape x ... x m`."""
        batch_shape = self.distribution.batch_shape
        return values.reshape(*batch_shape, *[1] * (positions.dim() - 1 - len(batch_shape)), values.shape[-1])

    def init(self, rows: Tensor, latent: Tensor | None = None) -> SamplerState:
        r"""Make a state from feasible rows.

        Args:
            rows: A `batch_shape x num_chains x m` tensor of values of `u` inside the bounds.
            latent: A `batch_shape x num_chains x r` tensor of latent coordinates of `h` at these rows; needed where
                the covariance is a low-rank root, not used elsewhere.

        Raises:
            ValueError: If shapes disagree, if rows are not inside the bounds, if the latent coordinates are needed and
                missing, or if they disagree with a row that has no noise.
        """
        distribution = self.distribution
        batch_shape, m = distribution.batch_shape, distribution.num_rows
        if rows.dim() != len(batch_shape) + 2 or rows.shape[:-2] != batch_shape or rows.shape[-1] != m:
            expected = " x ".join(str(size) for size in (*batch_shape, "num_chains", m))
            raise ValueError(f"rows must be {expected}; got {tuple(rows.shape)}.")
        rows = rows.detach().to(distribution.mean)
        lower, upper = distribution.lower.unsqueeze(-2), distribution.upper.unsqueeze(-2)
        outside = ~((rows >= lower) & (rows <= upper))
        if bool(outside.any()):
            places = outside.flatten(0, -2).any(0).nonzero().squeeze(-1).tolist()[:10]
            raise ValueError(
                f"{int(outside.sum())} of the {rows.numel()} starting values, of rows {places}, are not inside their "
                "bounds; feasible_start finds such rows."
            )
        if distribution.root is None:
            x = rows - distribution.mean.unsqueeze(-2)
            return SamplerState(position=x)
        if latent is None:
            raise ValueError("A low-rank covariance needs the latent coordinates of the starting rows; pass latent.")
        latent = latent.detach().to(rows)
        rest = rows - distribution.noiseless(latent)
        noise_sd = distribution.noise.sqrt().unsqueeze(-2).expand_as(rest)
        noisy = noise_sd > 0
        tolerance = math.sqrt(torch.finfo(rows.dtype).eps) * distribution.gamma_diagonal.sqrt().unsqueeze(-2)
        if bool((~noisy & (rest.abs() > tolerance)).any()):
            raise ValueError("A row without noise must equal mean + F latent; its starting value does not.")
        # Without noise the coordinate e has no effect on its row.
        white = torch.where(noisy, rest / torch.where(noisy, noise_sd, 1), 0)
        return SamplerState(position=torch.cat([latent, white], dim=-1))

    def _velocities(self, position: Tensor, num_steps: int, generator: torch.Generator | None) -> Tensor:
        """Draw `b x num_steps x num_chains x p` velocities, all steps in one matrix product."""
        b, chains, p = position.shape
        normal = torch.randn(
            b, num_steps * chains, p, generator=generator, dtype=position.dtype, device=position.device
        )
        if self.distribution.root is None:
            normal = times_transpose(normal, self._cholesky)
        return normal.reshape(b, num_steps, chains, p)

    def step(self, state: SamplerState, generator: torch.Generator | None = None) -> tuple[SamplerState, SamplerInfo]:
        """Move every chain once; raises as `run` does."""
        state, _, info = self.run(state, num_steps=1, generator=generator)
        return state, info

    @torch.no_grad()
    def run(
        self, state: SamplerState, num_steps: int, generator: torch.Generator | None = None
    ) -> tuple[SamplerState, Tensor, SamplerInfo]:
        r"""Move every chain `num_steps` times.

        Returns:
            The last state, the positions as a `batch_shape x num_steps x num_chains x p` tensor, and the info with the
            numbers of reflections summed over the steps.

        Raises:
            TooManyReflectionsError: If a trajectory has implausibly many reflections: more than `1000 (m + 10)`, plus
                what rows need to go back and forth between bounds that are close together.
            RuntimeError: If rows end outside their bounds by more than rounding, as they may if `Gamma` is too badly
                conditioned for the dtype.
            ValueError: If `num_steps` is not positive.
        """
        if num_steps < 1:
            raise ValueError(f"num_steps must be positive; got {num_steps}.")
        position = self._flatten(state.position, 2)
        step_bytes = position.numel() * position.element_size()
        chunk = max(1, CHUNK_BYTES // max(1, step_bytes))
        parts, total = [], torch.zeros(position.shape[:-1], dtype=torch.long, device=position.device)
        for first in range(0, num_steps, chunk):
            velocities = self._velocities(position, min(chunk, num_steps - first), generator)
            positions, counts, excess = self._trajectories(position, velocities)
            self._check(counts, excess, position.dtype)
            total = total + counts
            parts.append(positions)
            position = positions[:, -1]
        positions = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
        batch_shape = self.distribution.batch_shape
        return (
            SamplerState(position=position.reshape(state.position.shape).clone()),
            positions.reshape(*batch_shape, *positions.shape[1:]),
            SamplerInfo(num_evaluations=total.reshape(*batch_shape, total.shape[-1])),
        )

    def _check(self, counts: Tensor, excess: float, dtype: torch.dtype) -> None:
        if bool((counts < 0).any()):
            raise TooManyReflectionsError(
                f"A trajectory had more than {self.max_reflections} reflections. {self._least_room()} Check what was "
                "observed there and its units, give these rows (more) noise, or merge rows that say the same without "
                "noise."
            )
        tolerance = math.sqrt(torch.finfo(dtype).eps)
        if not excess <= tolerance:
            raise SamplingError(
                f"Rows left their bounds by {excess:.1e} standard deviations, more than the rounding of {dtype}: the "
                "covariance is too badly conditioned for it. Use double precision or more noise."
            )

    def _least_room(self) -> str:
        """A sentence that names the rows with the least room for a trajectory, alone or far in their tails."""
        distribution = self.distribution
        scale = distribution.gamma_diagonal.sqrt()
        width = ((distribution.upper - distribution.lower) / scale).reshape(-1, distribution.num_rows).amin(0)
        beyond = torch.maximum(distribution.lower - distribution.mean, distribution.mean - distribution.upper) / scale
        beyond = beyond.reshape(-1, distribution.num_rows).amax(0)
        tightness = torch.maximum(1 / width, beyond)
        order = [i for i in tightness.argsort(descending=True)[:3].tolist() if tightness[i] > TIGHT]
        if not order:
            return (
                "All rows together leave almost no room, though each by itself does: they nearly contradict each other."
            )
        rows = ", ".join(
            f"{i} ({beyond[i]:.1e} standard deviations from its bounds)"
            if beyond[i] > 1 / width[i]
            else f"{i} ({width[i]:.1e} standard deviations between its bounds)"
            for i in order
        )
        return f"All rows together leave almost no room; by themselves these leave the least: {rows}."

    def rows(self, positions: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Map positions, `batch_shape x ... x p`, to rows `u`, `batch_shape x ... x m`, inside the bounds."""
        distribution = self.distribution
        offset = positions
        if distribution.root is not None:
            r = distribution.root.shape[-1]
            noise_sd = self._align(distribution.noise.sqrt(), positions)
            root = distribution.root
            extra = positions.dim() - 1 - len(distribution.batch_shape)
            root = root.reshape(*root.shape[:-2], *[1] * max(0, extra - 1), *root.shape[-2:])
            z = positions[..., :r]
            h = (z.unsqueeze(-2) @ root.mT).squeeze(-2) if extra == 0 else z @ root.mT
            offset = h + noise_sd * positions[..., r:]
        rows = self._align(distribution.mean, positions) + offset
        # Adding the mean, or multiplying by the root again, rounds; in place, for these are large.
        return rows.clamp_(self._align(distribution.lower, positions), self._align(distribution.upper, positions))

    def latent(self, positions: Tensor) -> Tensor | None:
        """Map positions, `... x p`, to the coordinates `z`, `... x r`; `None` for a dense covariance."""
        root = self.distribution.root
        return None if root is None else positions[..., : root.shape[-1]]
