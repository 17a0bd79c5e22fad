r"""Split Hamiltonian Monte Carlo of the noiseless rows around the Gaussian of expectation propagation.

Given the rows, the latent coordinates of `h` have the density `N(z; 0, I) prod_i f_i(h_i)^count_i`, with `f_i(h_i)` the
probability of what row `i` tells, its noise integrated out. In coordinates `w` that are standard normal under the
Gaussian of expectation propagation its log is, up to a constant,

    `-w^T w / 2 + U(w)`,  `U(w) = sum_i count_i (log f_i(h_i) - log site_i(h_i))`.

A trajectory alternates kicks by the gradient of `U` with rotations of `(w, p)`, the exact motion in the Gaussian
([Shahbaba2014split]_, section 3.1), over a right angle in all; a Metropolis test makes it exact whatever the Gaussian.
Rows without noise are walls, at which rotations are reflected ([Pakman2014exact]_, section 2).

The Gaussian is preconditioned: it is widened along rows that spread more than it says. Where all answers about an item
point to one side its tail towards that side is far too light, which is why it serves as coordinates here, and not as a
proposal.

.. [Gorham2015measuring] J. Gorham, L. Mackey. Measuring sample quality with Stein's method. NeurIPS 2015.
.. [Pakman2014exact] Pakman, Paninski. Exact Hamiltonian Monte Carlo for truncated multivariate Gaussians. 2014.
.. [Shahbaba2014split] Shahbaba et al. Split Hamiltonian Monte Carlo. Statistics and Computing 24, 2014.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_skewgp.exceptions import UnsupportedError
from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation
from botorch_skewgp.truncated.row_factor import open_uniform, standard_normal
from botorch_skewgp.truncated.samplers.coordinates import coordinates_of
from botorch_skewgp.truncated.samplers.feasibility import feasible_point
from botorch_skewgp.truncated.samplers.sampler import Sampler, SamplerInfo, SamplerState
from botorch_skewgp.truncated.samplers.trajectories.eager import advance, half_angle_tangent
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

RIGHT_ANGLE = math.pi / 2


@dataclass(frozen=True)
class Tuning:
    """Constants of the sampler; `python -m benchmarks samplers` has the figures behind them."""

    accepted: float = 0.8  # mean acceptance below which a trajectory gets twice the rotations
    # fewest rotations of a trajectory; a single one would be an independent proposal, with the tails of the Gaussian
    fewest: int = 2
    most: int = 256
    jitter: float = 0.2  # relative half-width of each chain's random angle, against periodic motion
    every: int = 8  # every so many trajectories one turns by a quarter of the angle, for chains at a stiff wall
    pool: int = 8  # starts to choose from, for each chain
    round_length: int = 8  # trajectories of a round of warm-up
    max_rounds: int = 12  # most rounds of warm-up
    misfit: float = 1.5  # variance of a row, over that in the Gaussian, from which on this is stretched along it
    watched: int = 8  # number of directions whose scores are watched
    told_by: int = 256  # number of positions that tell the directions
    max_entries: int = 2**18  # entries of rows drawn at a time, which a cache can hold


TUNING = Tuning()


class Preconditioner(NamedTuple):
    """The map from positions to the first Gaussian's coordinates, `w + D^T (scale - 1) D w`; symmetric. Without it
    10,000 answers of one kind at a prior variance of 25 take 2 s for .13, and their draws stay poor.
    """

    directions: Tensor  # D, j x p, orthonormal
    scale: Tensor  # j x 1

    def __call__(self, w: Tensor) -> Tensor:
        """Coordinates of the first Gaussian; of a gradient in these that in `w`."""
        return w + self.directions.mT @ ((self.scale - 1) * (self.directions @ w))


class HamiltonianSampler(Sampler):
    """Hamiltonian Monte Carlo, all chains as one matrix, around a Gaussian that need not be at the fixed point; `start`
    tunes it. Raises `UnsupportedError` if answers of rows without noise may be slips.
    """

    def __init__(self, distribution: TruncatedNormal, approximation: ExpectationPropagation) -> None:
        super().__init__(distribution)
        noisy = distribution.noise > 0
        if distribution.heights is not None and not bool(noisy.all()):
            raise UnsupportedError(
                "The hamiltonian sampler needs noise in all rows where answers may be slips; use "
                "DrawSettings(sampler='reflective'), or None."
            )
        self._coordinates = coordinates_of(distribution, approximation)
        # integrating the noise out is smooth; a wall's own term is left out below
        self._factor = distribution.factor.with_noise(torch.where(noisy, distribution.noise, 1.0))
        self._exact = (~noisy).nonzero().squeeze(-1)
        bounded = distribution.lower.isfinite() | distribution.upper.isfinite()
        self._walls = (~noisy & bounded).nonzero().squeeze(-1)
        self._precision, self._shift = (entry.unsqueeze(-1) for entry in approximation.sites)
        self._half_precision = 0.5 * self._precision
        self._approximation = approximation
        self._preconditioner = Preconditioner(
            self._shift.new_zeros(0, self._coordinates.size), self._shift.new_zeros(0, 1)
        )
        self._set_wall_normals()
        self.num_rotations, self.acceptance = TUNING.fewest, 0.0
        self._at_a_time = max(32, TUNING.max_entries // max(1, distribution.num_rows))
        self._watched = self._preconditioner.directions.mT

    def potential(self, w: Tensor) -> tuple[Tensor, Tensor]:
        """`U` and its gradient. Values `k`, and gradients `p x k`, at positions `p x k`."""
        is_preconditioned = len(self._preconditioner.scale) > 0
        first = self._preconditioner(w) if is_preconditioned else w
        h = self._coordinates.times(first)
        value, slope = (part.mT for part in self._factor.log_likelihood_and_slope(h.mT))
        if len(self._exact):
            value, slope = (part.index_fill(0, self._exact, 0.0) for part in (value, slope))
        # in place: passes over rows are most of the work
        value.addcmul_(h, torch.addcmul(-self._shift, self._half_precision, h))
        slope.addcmul_(self._precision, h).sub_(self._shift)
        if self.distribution.num_factors is None:
            total = value.sum(0)
        else:
            total = self.distribution.num_factors @ value
            slope.mul_(self.distribution.num_factors.unsqueeze(-1))
        gradient = self._coordinates.transposed_times(slope)
        if is_preconditioned:
            total = total - 0.5 * (first.square().sum(0) - w.square().sum(0))
            return total, self._preconditioner(gradient - first) + w
        return total, gradient

    @torch.no_grad()
    def init(self, rows: Tensor) -> SamplerState:
        """Make a state from positions, `num_chains x p`, in the place of rows; see `start`."""
        value, slope = self.potential(rows.mT)
        return SamplerState(rows, value, slope.mT)

    @torch.no_grad()
    def start(self, num_chains: int, generator: torch.Generator | None = None) -> SamplerState:
        """The state of chains after tuning: rotations and preconditioner are found, and the starts forgotten."""
        state = self._first(num_chains, generator)
        for _ in range(TUNING.max_rounds):
            state, positions, _ = self.run(state, TUNING.round_length, generator)
            if self.acceptance < TUNING.accepted and self.num_rotations < TUNING.most:
                self.num_rotations *= 2
                continue
            first = self._preconditioner(state.position.mT)
            if not self._fit_preconditioner(positions[TUNING.round_length // 2 :].flatten(0, 1).mT):
                break
            inverse = self._preconditioner._replace(scale=1 / self._preconditioner.scale)
            state = self.init(inverse(first).mT)
        state, positions, _ = self.run(state, TUNING.round_length, generator)
        if not len(self._walls):  # directions in which positions spread most, and those that are stretched
            some = positions.flatten(0, 1)[-TUNING.told_by :]
            centred, number = some - some.mean(0), min(TUNING.watched, some.shape[-1])
            spread = centred.mT @ torch.linalg.eigh(centred @ centred.mT)[1][:, -number:]
            directions = torch.cat([spread, self._preconditioner.directions[: TUNING.watched].mT], -1)
            self._watched = torch.nn.functional.normalize(directions, dim=0)
        return state

    def _first(self, num_chains: int, generator: torch.Generator | None) -> SamplerState:
        """Draws of the Gaussian, half of the prior where there may be modes apart, resampled by their density."""
        if len(self._walls):  # along the Gaussian's ellipses from a point between them
            zero, (lower, upper) = torch.zeros_like(self._squares), (bound.squeeze(-1) for bound in self._room)
            walls = TruncatedNormal(zero, LowRankPrior(self._normals), lower, upper, zero)
            point = feasible_point(walls, self._normals, self._normals.new_zeros(self._coordinates.size))
            p = standard_normal((len(point), num_chains), point, generator)
            turn = torch.full_like(p[0], RIGHT_ANGLE)
            return self.init(self._rotate(point.unsqueeze(-1).expand_as(p), p, turn)[0].mT)
        w, value = self.propose(TUNING.pool * num_chains, generator)
        if self.distribution.heights is not None and self._coordinates.own is None:
            product = self._approximation.product
            mean, root = product.latent_mean.unsqueeze(-1), product.latent_root
            w[:, ::2] = torch.linalg.solve_triangular(root, w[:, ::2] - mean, upper=True)
            log_gaussian = -0.5 * w.square().sum(0)
            log_prior = root.diagonal().abs().log().sum() - 0.5 * (mean + root @ w).square().sum(0)
            value = self.potential(w)[0] + log_gaussian - torch.logaddexp(log_gaussian, log_prior)
        if not bool((value > -torch.inf).any()):
            raise ValueError("The density is zero at every start; its Gaussian approximation is no approximation.")
        chosen = (value - value.amax()).softmax(-1).multinomial(num_chains, replacement=True, generator=generator)
        return self.init(w[:, chosen].mT)

    def propose(self, num_draws: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Positions drawn from the Gaussian, `p x num_draws`, and the logs of their importance weights."""
        w = standard_normal((self._coordinates.size, num_draws), self.distribution.mean, generator)
        return w, torch.cat([self.potential(part)[0] for part in w.split(self._at_a_time, -1)])

    @torch.no_grad()
    def run(
        self, state: SamplerState, num_steps: int, generator: torch.Generator | None = None
    ) -> tuple[SamplerState, Tensor, SamplerInfo]:
        positions, rates, scores = [], [], []
        angle = RIGHT_ANGLE / self.num_rotations
        for i in range(num_steps):
            shorter = i % TUNING.every == 0
            state, rate = self._trajectory(state, angle / 4 if shorter else angle, generator)
            positions.append(state.position)
            scores.append(self._scores(state))
            if not shorter or num_steps == 1:
                rates.append(rate)
        self.acceptance = float(torch.stack(rates).mean())
        evaluations = torch.full_like(rate, num_steps * self.num_rotations, dtype=torch.long)
        return state, torch.stack(positions), SamplerInfo(evaluations, torch.stack(scores))

    @torch.no_grad()
    def _trajectory(
        self, state: SamplerState, angle: float, generator: torch.Generator | None
    ) -> tuple[SamplerState, Tensor]:
        """One trajectory of every chain, and the probabilities with which they are accepted, `k`."""
        assert state.log_likelihood is not None
        assert state.slope is not None
        w, value, slope = state.position.mT, state.log_likelihood, state.slope.mT
        turn, coin = torch.rand(2, w.shape[-1], dtype=w.dtype, device=w.device, generator=generator)
        turn = angle * (1 + TUNING.jitter * (2 * turn - 1))
        p = standard_normal(w.shape, w, generator)
        before = value - 0.5 * (p.square() + w.square()).sum(0)
        half = 0.5 * turn
        for _ in range(self.num_rotations):
            p = torch.addcmul(p, half, slope)
            w, p = self._rotate(w, p, turn)
            value, slope = self.potential(w)
            p = torch.addcmul(p, half, slope)
        after = value - 0.5 * (p.square() + w.square()).sum(0)
        rate = (after - before).exp().nan_to_num(0.0).clamp(max=1.0)
        accepted = coin < rate
        column = accepted.unsqueeze(-1)
        state = SamplerState(
            torch.where(column, w.mT, state.position),
            torch.where(accepted, value, state.log_likelihood),
            torch.where(column, slope.mT, state.slope),
        )
        return state, rate

    def _rotate(self, w: Tensor, p: Tensor, turn: Tensor) -> tuple[Tensor, Tensor]:
        """Rotate positions and momenta, `p x k`, by each chain's angle, reflected at walls."""
        if not len(self._walls):
            cosine, sine = turn.cos(), turn.sin()
            return torch.addcmul(cosine * w, sine, p), torch.addcmul(cosine * p, sine, w, value=-1)
        left = (0.5 * turn).tan()
        normals, (lower, upper) = self._normals, self._room
        below, above = self._sides
        while True:
            x, v = normals @ w, normals @ p
            times = [half_angle_tangent(x, v, lower)] if below else []
            times += [half_angle_tangent(-x, -v, -upper)] if above else []
            time, wall = (times[0] if len(times) == 1 else torch.minimum(*times)).min(0)
            w, p, left, hit = advance(w.mT, p.mT, time, left)
            w, p = w.mT, p.mT
            if not bool(hit.any()):
                return w, p
            normal = normals[wall]  # k x p
            along = (normal.mT * p).sum(0) / self._squares[wall]
            p = p - torch.where(hit, 2 * along, 0.0) * normal.mT

    def _set_wall_normals(self) -> None:
        """Rows without noise as linear functions of the present coordinates, and the room around their centres."""
        lower, upper = self.distribution.lower, self.distribution.upper
        unit = lower.new_zeros(len(lower), len(self._walls))
        unit[self._walls, torch.arange(len(self._walls), device=unit.device)] = 1
        self._normals = self._preconditioner(self._coordinates.transposed_times(unit)).mT
        self._squares = self._normals.square().sum(-1)
        centre = self._coordinates.centre[self._walls]
        self._room = tuple(bound[self._walls].unsqueeze(-1) - centre for bound in (lower, upper))
        self._sides = tuple(bool(bound.isfinite().any()) for bound in self._room)

    def _fit_preconditioner(self, w: Tensor) -> bool:
        """Widen the Gaussian along rows that spread more at positions, `p x k`; whether there were any."""
        misfit, expected = TUNING.misfit, self._approximation.variance
        first = self._preconditioner(w)
        left = first - first.mean(-1, keepdim=True)
        h, spread = self._coordinates.linear(left), expected.clone()
        # the present Gaussian, along its own directions too
        along = self._coordinates.linear(self._preconditioner.directions.mT).mT  # j x m
        present = spread + ((self._preconditioner.scale.square() - 1) * along.square()).sum(0)
        if not bool((h.var(-1) > misfit * present).any()):
            return False
        directions: list[Tensor] = []
        while len(directions) < self._coordinates.size:
            known = spread > 1e-6 * expected  # of the rest rounding is left
            ratio = torch.where(known, h.var(-1) / torch.where(known, spread, 1.0), 0.0)
            if float(ratio.amax()) <= misfit:
                break
            unit = torch.zeros_like(h[:, :1])
            unit[ratio.argmax()] = 1
            v = self._coordinates.transposed_times(unit).squeeze(-1)
            for other in directions:
                v = v - (other @ v) * other
            v = v / torch.linalg.vector_norm(v)
            directions.append(v)
            of_rows, of_chains = self._coordinates.linear(v.unsqueeze(-1)).squeeze(-1), v @ left
            h = h - torch.outer(of_rows, of_chains)
            spread = spread - of_rows.square()
        basis = torch.stack(directions) if directions else first.new_zeros(0, len(first))
        self._preconditioner = Preconditioner(basis, (basis @ left).std(-1, keepdim=True))
        self._set_wall_normals()
        return True

    def noiseless(self, positions: Tensor) -> Tensor:
        """Noiseless rows `h`, `k x m`, at positions, `k x p`."""
        return self._coordinates.times(self._preconditioner(positions.mT)).mT

    def _scores(self, state: SamplerState) -> Tensor:
        """Scores along the watched directions, `k x j`, of mean zero: `E[s^k dl/ds + k s^(k-1)] = 0` for the log
        density `l` (Stein's identity; [Gorham2015measuring]_), which draws that miss a tail break. None beside walls.
        """
        assert state.slope is not None
        s, slope = state.position @ self._watched, (state.slope - state.position) @ self._watched
        return torch.cat([s * slope + 1, s.pow(3) * slope + 3 * s.square()], -1)

    def rows(self, positions: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw rows `u`, `... x m`, given positions `... x p`; a row that stands for several gets their mean."""
        flat = positions.reshape(-1, positions.shape[-1])
        rows = flat.new_empty(len(flat), self.distribution.num_rows)
        for part, result in zip(flat.split(self._at_a_time), rows.split(self._at_a_time), strict=True):
            result.copy_(self._rows(self.noiseless(part), generator))
        return rows.reshape(*positions.shape[:-1], -1)

    def _rows(self, h: Tensor, generator: torch.Generator | None) -> Tensor:
        """Rows given their noiseless parts, `k x m`."""
        distribution, factor, level = self.distribution, self._factor, open_uniform(h, generator)
        rows = factor.draw_given(h, level)
        if distribution.count is not None and bool((distribution.count != 1).any()):
            which = (distribution.count != 1).nonzero().squeeze(-1)  # a weight below one has more noise than one row
            some, count = factor.map(lambda values: values[..., which]), distribution.count[which]
            rows[:, which] = some.draw_mean_given(h[:, which], count, level[:, which])
        if len(self._exact):
            inside = distribution.factor.clamp(h)  # rounding only
            rows[:, self._exact] = inside[:, self._exact]
        return rows
