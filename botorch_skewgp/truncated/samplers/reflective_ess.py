r"""Linear elliptical slice sampling with reflections: exact Hamiltonian Monte Carlo of a truncated normal.

The ellipse `x cos t + v sin t` through the current rows `x` and a fresh draw `v` of the same Gaussian, which LIN-ESS
[Gessner2020integrals]_ cuts at bounds, is followed for a fixed time, and where row `i` reaches a bound the velocity is
reflected in the metric of `Gamma`,

    v <- v - 2 (v_i / Gamma_ii) Gamma[:, i],

which keeps `v' Gamma^-1 v` and turns `v_i` around; at walls of finite height rows are refracted, see
`trajectories.eager`. These are the exact Hamiltonian dynamics of [Pakman2014exact]_, section 2, in the coordinates of
the rows, where they cost `O(m)` and need no solve, no step size and no rejection.

Times need no trigonometry. With `T = tan(t/2)`, the times at which `x cos t + v sin t = l` are the roots of
`(x + l) T^2 - 2 v T + (l - x) = 0`. At a root the velocity is `-+ D`, `D = sqrt(v^2 + x^2 - l^2)`, and the row falls
through `l` at `T = (v + D) / (x + l) = (x - l) / (D - v)`; of these forms one does not cancel. A row that has just
bounced has `v > 0`, and the first form then gives its next hit, so that no tolerance decides what counts as a hit.

.. [Gessner2020integrals] Gessner, Kanjilal, Hennig. Integrals over Gaussians under linear domain constraints. 2020.
.. [Pakman2014exact] Pakman, Paninski. Exact Hamiltonian Monte Carlo for truncated multivariate Gaussians. 2014.
"""

from __future__ import annotations

import functools
import logging
import math
from importlib.util import find_spec

import torch
from torch import Tensor

from botorch_skewgp.exceptions import SamplingError, TooManyReflectionsError, UnsupportedError
from botorch_skewgp.truncated.row_factor import standard_normal
from botorch_skewgp.truncated.samplers.sampler import RowSampler, SamplerInfo, SamplerState
from botorch_skewgp.truncated.samplers.trajectories.eager import EagerTrajectories
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

HORIZON = math.pi / 2  # of a trajectory: unhindered it ends in an independent draw
MAX_REFLECTIONS = 10**8  # of a trajectory; close walls make many, and more take too long
MAX_ROWS = 2**15  # whose covariance, 8.6 GB, is built
CHUNK_BYTES = 2**28  # of velocities drawn at a time, for many steps in one matrix product
_logger = logging.getLogger("botorch_skewgp")


class ReflectiveEllipticalSliceSampler(RowSampler):
    r"""Linear elliptical slice sampling with reflections; `UnsupportedError` for more than `MAX_ROWS` rows."""

    def __init__(self, distribution: TruncatedNormal, compiled: bool | None = None) -> None:
        """Trajectories are compiled where `uses_numba` says so if `None`."""
        super().__init__(distribution)
        if distribution.num_rows > MAX_ROWS:
            raise UnsupportedError(
                f"The reflective sampler needs the covariance of all rows, {8e-9 * distribution.num_rows**2:.0f} GB "
                f"for {distribution.num_rows}, and builds it for at most {MAX_ROWS}. Give the rows (more) noise, merge "
                'those that say the same, or use DrawSettings(sampler="hamiltonian").'
            )
        noisy_prior = distribution.noisy_prior
        # A row between two bounds is reflected about (velocity * horizon / width) times, which is many if it is narrow;
        # one that is z standard deviations in a tail falls back to its bound about z times.
        crossings, falls = (float(values.sum()) for values in self._tightness(HORIZON))
        plausible = 1000 * (distribution.num_rows + 10) + 10 * (crossings + falls)
        self.max_reflections = int(min(plausible, MAX_REFLECTIONS))
        compiled = uses_numba(distribution.mean.device) if compiled is None else compiled
        if compiled:
            from botorch_skewgp.truncated.samplers.trajectories.numba_trajectories import NumbaTrajectories
        self._trajectories = (NumbaTrajectories if compiled else EagerTrajectories)(
            noisy_prior.coloured_covariance.detach(),
            (distribution.lower - distribution.mean).detach(),
            (distribution.upper - distribution.mean).detach(),
            (HORIZON, self.max_reflections),
            distribution.heights,
        )

    def step(self, state: SamplerState, generator: torch.Generator | None = None) -> tuple[SamplerState, SamplerInfo]:
        """Move every chain once; raises as `run` does."""
        state, _, info = self.run(state, num_steps=1, generator=generator)
        return state, info

    @torch.no_grad()
    def run(
        self, state: SamplerState, num_steps: int, generator: torch.Generator | None = None
    ) -> tuple[SamplerState, Tensor, SamplerInfo]:
        """As `Sampler.run`; `ValueError` without steps, `TooManyReflectionsError` for more than `1000 (m + 10)` in a
        trajectory (plus those between close bounds), `SamplingError` if rows leave their bounds by more than rounding.
        """
        if num_steps < 1:
            raise ValueError(f"num_steps must be positive; got {num_steps}.")
        position, noisy_prior = state.position, self.distribution.noisy_prior
        chains, m = position.shape
        chunk = max(1, CHUNK_BYTES // max(1, position.numel() * position.element_size()))
        parts, total = [], torch.zeros(chains, dtype=torch.long, device=position.device)
        for first in range(0, num_steps, chunk):
            steps = min(chunk, num_steps - first)
            normal = standard_normal((steps * chains, noisy_prior.num_normals), position, generator)
            velocities = noisy_prior.colour(normal).reshape(steps, chains, m)
            positions, counts, excess = self._trajectories(position, velocities)
            self._check(counts, excess)
            total = total + counts
            parts.append(positions)
            position = positions[-1]
        positions = parts[0] if len(parts) == 1 else torch.cat(parts)
        return SamplerState(position.clone()), positions, SamplerInfo(total)

    def _check(self, counts: Tensor, excess: float) -> None:
        if bool((counts < 0).any()):
            raise TooManyReflectionsError(
                f"A trajectory had more than {self.max_reflections} reflections. {self._min_room()} Check what was "
                "observed there and its units, give these rows (more) noise, or merge rows that say the same without "
                "noise."
            )
        if not excess <= math.sqrt(torch.finfo(torch.float64).eps):
            raise SamplingError(
                f"Rows left their bounds by {excess:.1e} standard deviations, which is more than rounding: the "
                "covariance is too badly conditioned. Use more noise."
            )

    def _min_room(self) -> str:
        """A sentence that names rows, three at most, narrower than a standard deviation or beyond one in a tail."""
        narrow, beyond = self._tightness(1.0)
        tightness = torch.maximum(narrow, beyond)
        order = [i for i in tightness.argsort(descending=True)[:3].tolist() if tightness[i] > 1]
        if not order:
            return (
                "All rows together leave almost no room, though each by itself does: they nearly contradict each other."
            )
        rows = ", ".join(
            f"{i} ({beyond[i]:.1e} standard deviations from its bounds)"
            if beyond[i] > narrow[i]
            else f"{i} ({1 / narrow[i]:.1e} standard deviations between its bounds)"
            for i in order
        )
        return f"All rows together leave almost no room; by themselves these leave the least: {rows}."

    def _tightness(self, horizon: float) -> tuple[Tensor, Tensor]:
        """How often rows cross between their bounds in a time, and their standard deviations in a tail, `m` each."""
        d = self.distribution
        scale = d.gamma_diagonal.sqrt()
        beyond = torch.maximum(d.lower - d.mean, d.mean - d.upper) / scale
        return scale * horizon / (d.upper - d.lower), beyond.clamp(min=0)


def uses_numba(device: torch.device) -> bool:
    """Whether numba compiles for `device` and is installed."""
    if device.type == "cpu" and find_spec("numba") is None:
        log_missing_numba()
        return False
    return device.type == "cpu"


@functools.cache
def log_missing_numba() -> None:
    """Log, once in a process, that samplers run in eager torch, and the extra that compiles them."""
    _logger.warning(
        "numba is not installed, so that samplers run in eager torch, up to a hundred times slower; the extra `fast` "
        "installs it."
    )
