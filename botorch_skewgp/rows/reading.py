r"""A reading: the linear functional that one observation measures, and its possible outcomes.

Everything about a kind of observation follows from its reading: the rows of data, the distribution of new
observations, fantasies, the information of an observation, and the knowledge gradient.

.. [Thurstone1927law] L. L. Thurstone. A law of comparative judgment. Psychological Review 34, 1927.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from torch import Tensor

from botorch_skewgp.rows.rows import Rows
from botorch_skewgp.truncated.univariate import hermite, log_interval_probability, standardise


@dataclass(frozen=True, eq=False)
class FantasyRows:
    """A batch of rows over the few points of a fantasy: `m` functionals of the values at its `n'` points, with noise,
    in intervals. See `botorch_skewgp.rows.rows.Rows`, whose rows may be of any points.

    Args:
        weight: A `batch_shape x m x n'` tensor of weights.
        lower: A `batch_shape x m` tensor of lower ends.
        upper: A `batch_shape x m` tensor of upper ends; equal to `lower` in all rows for numbers.
        noise_covariance: A `batch_shape x m x m` tensor.
        slip: The probability of the answers as slips, `batch_shape x m` if each row is an answer, `batch_shape x 1` if
            all rows are one; `None` without slips.
        attention: The probability of an answer that is neither a slip nor a guess.
    """

    weight: Tensor
    lower: Tensor
    upper: Tensor
    noise_covariance: Tensor
    slip: Tensor | None = None
    attention: Tensor | float = 1.0

    @classmethod
    def at_points(cls, lower: Tensor, upper: Tensor, noise: Tensor) -> FantasyRows:
        """One row per point, with independent noise of given variances; all `batch_shape x n'`."""
        eye = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
        return cls(eye, lower, upper, torch.diag_embed(noise.to(lower).expand_as(lower)))


@dataclass(frozen=True, eq=False)
class Reading:
    r"""Readings `weight (f + v)` of `k` items, and the outcomes between ordered cut-points.

    `f` holds the latent function at the items and `v ~ N(0, noise I)` the noise of each ([Thurstone1927law]_). The
    cut-points divide the line of each reading into cells, the lowest first. Mostly there is one reading and an outcome
    is one of its cells: below or above zero for a label, between cut-points for a grade, won or lost for a duel. A
    choice among `k` items has a reading for each ordered pair, and the outcome "item `i` is chosen" bounds those of `i`
    against every other to be positive: joint outcomes of readings with shared noise.

    Args:
        weight: An `R x k` tensor: the weights of the items in each reading.
        cutpoints: An `R x C` tensor of increasing cut-points; `C = 0` where a reading is seen as a number.
        noise: The variance of each item's noise, of shape `1`.
        outcomes: An `O x R x 2` integer tensor: for each outcome and reading, the number of the cut-point below and of
            the one above, where number 0 is minus infinity and number `C + 1` infinity. By default the cells of the
            only reading, in increasing order.
        slips: An `O`-dim tensor: the probability of each outcome as a slip or a guess; the rest is that of an attentive
            answer. No slips if `None`.

    The weight of a reading of a single item is moved into its cut-points and becomes 1.

    Raises:
        InputDataError: If that weight is zero or not finite, or shapes are others.
    """

    weight: Tensor
    cutpoints: Tensor
    noise: Tensor
    outcomes: Tensor = None  # type: ignore[assignment]  # set when built
    slips: Tensor | None = None

    def __post_init__(self) -> None:
        if self.weight.ndim != 2 or self.cutpoints.ndim != 2 or len(self.cutpoints) != len(self.weight):
            raise InputDataError(
                "weight must be R x k and cutpoints R x C, with a row for each of R readings; got shapes "
                f"{tuple(self.weight.shape)} and {tuple(self.cutpoints.shape)}."
            )
        if self.noise.shape != (1,):
            raise InputDataError(f"noise must be one variance, of shape (1,); got shape {tuple(self.noise.shape)}.")
        if self.outcomes is None:
            cell = torch.arange(self.cutpoints.shape[-1] + 1, device=self.weight.device)
            object.__setattr__(self, "outcomes", torch.stack([cell, cell + 1], dim=-1).unsqueeze(-2))
        if self.slips is not None and self.slips.shape != self.outcomes.shape[:1]:
            raise InputDataError(
                f"slips must hold a probability for each of {len(self.outcomes)} outcomes; got shape "
                f"{tuple(self.slips.shape)}."
            )
        if self.weight.shape == (1, 1) and bool(self.weight != 1):
            self._measure_in_values()

    def _measure_in_values(self) -> None:
        """Write the reading of one item, `w (f + v)` with cut-points `c`, as `f + v` with cut-points `c / w`."""
        if not bool(self.weight.isfinite() & (self.weight != 0)):
            raise InputDataError(f"A reading of one item needs a finite weight other than 0; got {self.weight.item()}.")
        cutpoints, outcomes = self.cutpoints / self.weight, self.outcomes
        if bool(self.weight < 0):
            cutpoints, outcomes = cutpoints.flip(-1), cutpoints.shape[-1] + 1 - outcomes.flip(-1)
        for name, value in (("weight", torch.ones_like(self.weight)), ("cutpoints", cutpoints), ("outcomes", outcomes)):
            object.__setattr__(self, name, value)

    @classmethod
    def at_point(cls, cutpoints: Tensor, noise: Tensor, slips: Tensor | None = None) -> Reading:
        """The noisy value at one point."""
        return cls(cutpoints.new_ones(1, 1), cutpoints.unsqueeze(0), noise.to(cutpoints), slips=slips)

    @classmethod
    def choice(cls, num_items: int, noise: Tensor, like: Tensor, slips: Tensor | None = None) -> Reading:
        """A choice among items; in outcome `i` item `i` is best."""
        eye = torch.eye(num_items, dtype=like.dtype, device=like.device)
        item = torch.arange(num_items, device=like.device)
        winner, loser = (item.unsqueeze(-1) != item).nonzero(as_tuple=True)
        asked = (winner == item.unsqueeze(-1)).long()
        outcomes = torch.stack([asked, torch.full_like(asked, 2)], dim=-1)
        weight = eye[winner] - eye[loser]
        return cls(weight, like.new_zeros(weight.shape[0], 1), noise.to(like), outcomes, slips)

    @property
    def num_items(self) -> int:
        """The number `k` of items."""
        return self.weight.shape[-1]

    @property
    def num_outcomes(self) -> int:
        """The number `O` of outcomes."""
        return self.outcomes.shape[0]

    @property
    def highest(self) -> int:
        """The outcome in which the first reading is largest; for a duel the first item wins."""
        return int(self.outcomes[:, 0, 0].argmax())

    @property
    def is_single(self) -> bool:
        """Whether there is a single reading, whose cells are the outcomes."""
        return self.weight.shape[0] == 1

    @property
    def has_independent_noise(self) -> bool:
        """Whether the noises of all readings are independent, as those of a difference and an average."""
        gram = self.weight @ self.weight.mT
        return bool((gram == torch.diag(gram.diagonal())).all())

    @property
    def _all_bounds(self) -> tuple[Tensor, Tensor]:
        return self.bounds(torch.arange(self.num_outcomes, device=self.weight.device))

    @property
    def variance(self) -> Tensor:
        """The noise variance of each reading; shape `R`."""
        return self.noise * self.weight.square().sum(-1)

    def bounds(self, outcome: Tensor) -> tuple[Tensor, Tensor]:
        """The bounds of the readings for given outcomes. `outcome.shape x R` for each."""
        end = torch.full_like(self.weight[:, :1], torch.inf)
        padded = torch.cat([-end, self.cutpoints, end], dim=-1)
        below, above = self.outcomes[outcome].unbind(-1)
        reading = torch.arange(self.weight.shape[0], device=self.weight.device)
        return padded[reading, below], padded[reading, above]

    def asked(self, outcome: Tensor) -> Tensor:
        """The readings that given outcomes bound, `outcome.shape x A`; all if outcomes bound different numbers."""
        last = self.cutpoints.shape[-1] + 1
        below, above = self.outcomes.unbind(-1)
        bounded = (below > 0) | (above < last)
        asked = bounded.sum(-1)
        if bool((asked != asked[0]).any()):
            bounded = torch.ones_like(bounded)
        readings = bounded.nonzero()[:, 1].view(self.num_outcomes, -1)
        return readings[outcome]

    # Data

    def rows(self, index: Tensor, outcome: Tensor, reads: Tensor | None = None) -> Rows:
        """The rows of single readings of known outcomes; points and quantities (see `rows`) of items are `m x k`."""
        lower, upper = self.bounds(outcome.to(self.weight.device))
        return self.rows_between(index, lower.squeeze(-1), upper.squeeze(-1), reads=reads)

    def rows_between(
        self, index: Tensor, lower: Tensor, upper: Tensor, noise: Tensor | None = None, reads: Tensor | None = None
    ) -> Rows:
        """The rows of `m` single readings in given intervals.

        Args:
            index: An `m x k` integer tensor: the points of the items.
            lower: An `m`-dim tensor of lower ends, in units of the latent function.
            upper: An `m`-dim tensor of upper ends; those of numbers are equal to the lower ones.
            noise: The noise variances, which broadcast to `m`; those of the reading if `None`.
            reads: An `m x k` integer tensor: what is read at the points, see `Rows`; values if `None`.
        """
        m, device = index.shape[0], self.weight.device
        return Rows(
            index=index.to(device),
            coefficient=self.weight.expand(m, -1),
            bias=self.weight.new_zeros(m),
            lower=lower,
            upper=upper,
            noise=(self.variance if noise is None else noise).expand(m),
            reads=None if reads is None else reads.to(device),
        )

    # New observations

    def log_probabilities(self, items: Tensor) -> Tensor:
        """The log probabilities of all outcomes, `... x O`, given the latent function at the items, `... x k`; raises
        `UnsupportedError` if outcomes are joint with correlated noise, and not those of a choice.
        """
        if not self.is_single and self.has_independent_noise:
            value = (items @ self.weight.mT).unsqueeze(-2)  # ... x 1 x R
            lower, upper = (standardise(bound, value, self.variance.sqrt()) for bound in self._all_bounds)
            return self._with_slips(log_interval_probability(lower, upper).sum(-1))
        if not self.is_single:
            self._check_choice()
            return self._with_slips(_log_best_of(items / self.noise.sqrt()))
        return self.log_outcome_probabilities(items @ self.weight[0])

    @torch.no_grad()
    def probabilities(self, items: Tensor) -> Tensor:
        """As `log_probabilities`, several times as fast, without derivatives or relative digits in the tails."""
        if self.is_single or self.has_independent_noise:
            value = (items @ self.weight.mT).unsqueeze(-2)  # ... x 1 x R
            attentive = cell_probabilities(*self._all_bounds, value, self.variance.sqrt()).prod(-1)
            return self.with_slips(attentive)
        self._check_choice()
        return self.with_slips(_best_of(items / self.noise.sqrt()))

    def log_outcome_probabilities(self, value: Tensor, variance: Tensor | float = 0.0) -> Tensor:
        """The log probabilities of outcomes, `... x O`, of readings without noise, with a variance besides its own."""
        scale, value = (self.variance.squeeze(0) + variance).sqrt().unsqueeze(-1), value.unsqueeze(-1)
        if self.num_outcomes == 2:
            margin = (value - self.cutpoints[0]) / scale
            up = self.outcomes[:, 0, 0].to(margin) * 2 - 1  # 1 for the cell above the cut-point, -1 for the one below
            return self._with_slips(torch.special.log_ndtr(margin * up))
        bounds = (standardise(bound.squeeze(-1), value, scale) for bound in self._all_bounds)
        return self._with_slips(log_interval_probability(*bounds))

    def _with_slips(self, log_attentive: Tensor) -> Tensor:
        """Log probabilities of outcomes, `... x O`, from those of attentive answers."""
        if self.slips is None:
            return log_attentive
        log_gain = torch.log1p(-self.slips.sum())
        return torch.logaddexp(log_attentive + log_gain, self.slips.to(log_attentive).log())

    @property
    def attention(self) -> Tensor | float:
        """The probability of an answer that is neither a slip nor a guess."""
        return 1.0 if self.slips is None else 1 - self.slips.sum()

    def slip_of(self, outcome: Tensor) -> Tensor:
        """The probability of given outcomes as slips."""
        if self.slips is None:
            return self.weight.new_zeros(outcome.shape)
        return self.slips.to(self.weight)[outcome]

    def with_slips(self, attentive: Tensor) -> Tensor:
        r"""The probabilities of outcomes from those of attentive answers, both `... x O`."""
        return attentive if self.slips is None else attentive * self.attention + self.slips.to(attentive)

    def outcome_of(self, noisy: Tensor) -> Tensor:
        """The outcomes of noisy values of the latent function, `... x k` of `f + v` at the items."""
        readings = (noisy @ self.weight.mT).unsqueeze(-2)
        lower, upper = self._all_bounds
        return ((readings > lower) & (readings <= upper)).all(-1).long().argmax(-1)

    def slipped(self, outcome: Tensor, generator: torch.Generator) -> Tensor:
        """Outcomes of attentive answers, some of them replaced by slips."""
        if self.slips is None:
            return outcome
        chances = torch.cat([1 - self.slips.detach().sum().reshape(1), self.slips.detach()]).double().cpu()
        drawn = torch.multinomial(chances, max(outcome.numel(), 1), replacement=True, generator=generator)
        drawn = drawn[: outcome.numel()].view(outcome.shape).to(outcome.device)
        return torch.where(drawn > 0, drawn - 1, outcome)

    def fantasy_rows(self, outcome: Tensor) -> FantasyRows:
        """The rows that one new observation of known outcome would add."""
        asked = self.asked(outcome)
        weight = self.weight[asked]  # batch_shape x A x k
        lower, upper = (bound.gather(-1, asked) for bound in self.bounds(outcome))
        slip = None if self.slips is None else self.slip_of(outcome).unsqueeze(-1)
        return FantasyRows(weight, lower, upper, self.noise * (weight @ weight.mT), slip, self.attention)

    def rows_over(self, index: Tensor, outcome: Tensor, num_points: int) -> FantasyRows:
        """The rows of single readings of known outcomes, `batch_shape x m`, at points of a fantasy, `... x m x k`."""
        lower, upper = (bound.squeeze(-1) for bound in self.bounds(outcome))
        points = torch.nn.functional.one_hot(index, num_points).to(self.weight)  # batch_shape x m x k x n
        weight = (self.weight[0].unsqueeze(-1) * points).sum(-2)
        slip = None if self.slips is None else self.slip_of(outcome)
        noise = torch.diag_embed(self.variance.expand_as(lower))
        return FantasyRows(weight, lower, upper, noise, slip, self.attention)

    @property
    def is_choice(self) -> bool:
        """Whether outcome `i` is that item `i` is above all others, as in `Reading.choice`."""
        k = self.num_items
        if self.num_outcomes != k or self.weight.shape[0] != k * (k - 1):
            return False
        choice = Reading.choice(k, self.noise, self.weight)
        names = ("weight", "cutpoints", "outcomes")
        return all(torch.equal(getattr(self, name), getattr(choice, name)) for name in names)

    def _check_choice(self) -> None:
        if not self.is_choice:
            raise UnsupportedError("Joint probabilities are known for choices only; draw from the posterior instead.")


def cell_probabilities(lower: Tensor, upper: Tensor, value: Tensor, scale: Tensor) -> Tensor:
    """The probabilities that noisy values are between bounds, to absolute accuracy."""
    above = torch.special.erf((upper - value) / (scale * 2**0.5))
    return (above - torch.special.erf((lower - value) / (scale * 2**0.5))) * 0.5


def _best_of(utility: Tensor) -> Tensor:
    """As `_log_best_of`, on a linear scale."""
    difference = (utility.unsqueeze(-1) - utility.unsqueeze(-2)) * 0.5**0.5  # ... x j x i
    difference.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)  # nothing to beat
    nodes, log_weights = hermite(utility, 16)
    chance = torch.zeros_like(utility)
    for node, weight in zip((nodes * 0.5**0.5).tolist(), log_weights.exp().tolist(), strict=True):
        chance += weight * (0.5 + 0.5 * torch.special.erf(difference + node)).prod(-1)
    return chance / chance.sum(-1, keepdim=True)


def _log_best_of(utility: Tensor) -> Tensor:
    """Log probabilities that each item is best, `E_v prod_{i != j} Phi(f_j - f_i + v)`, in units of an item's noise."""
    if utility.shape[-1] == 2:
        margin = (utility[..., 0] - utility[..., 1]) * 0.5**0.5
        return torch.special.log_ndtr(torch.stack([margin, -margin], dim=-1))
    difference = utility.unsqueeze(-1) - utility.unsqueeze(-2)  # ... x j x i
    nodes, log_weights = hermite(utility, 32)
    log_beats = torch.special.log_ndtr(difference.unsqueeze(-1) + nodes)  # ... x j x i x nodes
    beats_all = log_beats.sum(-2) - log_beats.diagonal(dim1=-3, dim2=-2).mT
    return torch.log_softmax((beats_all + log_weights).logsumexp(-1), dim=-1)
