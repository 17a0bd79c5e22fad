r"""Thresholds: where the probability of a yes crosses a level, along one input given the others.

`P(yes) >= level` is `f(x) >= c` with one number `c`, since the probability of a yes is a monotone function of the
latent function, the psychometric function of the field ([Kingdom2016psychophysics]_). Joint draws are solved for it.

.. [Kingdom2016psychophysics] Kingdom, Prins. Psychophysics: a practical introduction. 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.checking.linear_effects import categories_of
from botorch_skewgp.checks import as_count, as_number, as_probability, as_seed, as_tensor
from botorch_skewgp.inputs.columns import as_column
from botorch_skewgp.inputs.transforms import logarithmic_inputs
from botorch_skewgp.models.few_answers import warn_of_few_answers
from botorch_skewgp.observations import Observation
from botorch_skewgp.protocols import LatentModel, input_transform_of, members_of
from botorch_skewgp.rows import Reading

MAX_ENTRIES = 2**22  # of the draws of the latent function that are made at once


def kind_of_yes(model: LatentModel, kind: type[Observation] | None = None) -> type[Observation]:
    """The kind of a model's yes/no answers: the wanted one, or the first that has two outcomes at one point."""
    likelihood = model.likelihood
    for known in likelihood.kinds_of_outcomes if kind is None else (kind,):
        likelihood.for_kind(known)
        if known.points_per_observation == 1 and known in likelihood.kinds_of_outcomes:
            reading = model.answering_likelihood.reading(known, model.datapoints, model.outcome_scale)
            if reading.is_single and reading.num_outcomes == 2:
                return known
    raise UnsupportedError(
        "A threshold needs a model of yes/no answers at single points, such as Binary or Validity; got "
        f"{type(likelihood).__name__}{'' if kind is None else f' and the kind {kind.__name__}'}."
    )


@dataclass(frozen=True, eq=False)
class PsychometricFunction:
    """`P(yes | f) = guess + (1 - guess - lapse) Phi(sign (f - center) / sqrt(noise))` of the latent function `f`.

    Args:
        reading: What an answer reads, with two outcomes: 1 is a yes.
    """

    reading: Reading

    @classmethod
    def of(cls, model: LatentModel, kind: type[Observation] | None = None) -> PsychometricFunction:
        """That of a model's yes/no answers, see `kind_of_yes`."""
        kind = kind_of_yes(model, kind)
        return cls(model.answering_likelihood.reading(kind, model.datapoints, model.outcome_scale))

    def __call__(self, latent: Tensor, variance: Tensor | float = 0.0) -> Tensor:
        """The probability of a yes at values of the latent function, with normal errors of a variance."""
        return self.reading.log_outcome_probabilities(latent, variance)[..., 1].exp()

    @property
    def sign(self) -> int:
        """1 if high values of the latent function make a yes likely, -1 if low ones do."""
        return 1 if self.reading.highest == 1 else -1

    @property
    def center(self) -> Tensor:
        """The value of the latent function half way between the limits; a tensor of no dimensions."""
        return self.reading.cutpoints[0, 0]

    @property
    def noise(self) -> Tensor:
        """The variance of the noise; a tensor of no dimensions."""
        return self.reading.variance[0]

    @property
    def limits(self) -> tuple[Tensor, Tensor]:
        """The probability of a yes far on the one side and far on the other, the lower one first."""
        end = self.center.new_tensor([-torch.inf, torch.inf]) * self.sign
        low, high = self(end)
        return low, high

    def latent_level(self, level: float) -> Tensor:
        """The latent function where a yes has probability `level`; `InputDataError` if it is not between the limits."""
        level = as_number(level, "level")
        low, high = self.limits
        if not bool((low < level) & (level < high)):
            raise InputDataError(
                f"level must be between {float(low):.3g} and {float(high):.3g}, which the probability of a yes "
                f"approaches far on either side; got {level:.3g}."
            )
        return self.center + self.sign * self.noise.sqrt() * torch.special.ndtri((level - low) / (high - low))


class Threshold(NamedTuple):
    """The posterior of thresholds: its median, the ends of the credible band, and the probabilities of no crossing.

    Those are that it is `below` or `above` the bounds. All have shape `batch_shape`. Quantiles outside of the bounds
    are infinite: `upper = inf` says that there may be no crossing.
    """

    median: Tensor
    lower: Tensor
    upper: Tensor
    below: Tensor
    above: Tensor


def threshold(
    model: Model,
    X: Tensor,
    level: float,
    dim: int,
    bounds: Sequence[float] | Tensor,
    probability: float = 0.95,
    kind: type[Observation] | None = None,
    num_draws: int = 2048,
    num_points: int = 129,
    seed: int = 0,
) -> Threshold:
    r"""Where the probability of a yes first reaches a level, going along one input from one bound to the other.

    The first crossing of a draw of the latent function is found between points along the input by linear interpolation.
    Points are even, or have even logarithms where the model takes the logarithm of the input.
    A draw above the level at the first bound has its threshold before that bound, one that never reaches it beyond the
    second. Where the probability of a yes falls with the input, give the upper bound first.

    Example:
        >>> model = SkewGP(train_X, Binary(labels))
        >>> line = torch.linspace(0, 1, 50).unsqueeze(-1).expand(50, 2)  # the second input is replaced
        >>> curve = threshold(model, line, level=0.75, dim=1, bounds=(0.0, 1.0))

    Args:
        model: A SkewGP of yes/no answers, or an ensemble of such models, whose draws are taken together.
        X: A `batch_shape x d` tensor: the other inputs. Its entries in `dim` are not used.
        level: The probability of a yes at the threshold.
        dim: The input along which the threshold lies.
        bounds: From where to where to look for it.
        probability: The probability of the equal-tailed credible band.
        kind: The kind of answers, where the model takes several with two outcomes.
        num_draws: The number of draws of the latent function.
        num_points: The number of points along the input.
        seed: The seed of the draws; the same for all of the batch.

    Raises:
        UnsupportedError: If the model takes no yes/no answers.
        InputDataError: If `dim` names no input or one that the model reads as categories, `X` is no finite floating
            point tensor, the probability of a yes never is `level`, bounds are equal or not finite, a probability is
            outside (0, 1), or a number of draws or points is too small.
        BotorchTensorDimensionError: If `X` has another number of columns than the model.
    """
    members = members_of(model, "threshold")
    first = members[0]
    if not isinstance(X, Tensor) or not X.is_floating_point():
        raise InputDataError("X must be a floating point tensor.")
    level, probability = as_number(level, "level"), as_probability(probability, "probability")
    num_points, num_draws = as_count(num_points, "num_points"), as_count(num_draws, "num_draws", least=1)
    seed = as_seed(seed)
    if X.ndim == 0 or X.shape[-1] != first.dim:
        raise BotorchTensorDimensionError(f"X must be batch_shape x {first.dim}; got shape {tuple(X.shape)}.")
    dim = as_column(dim, first.dim, "dim")
    X = X.to(first.datapoints)
    ends = as_tensor(bounds, "bounds").to(X)
    if ends.shape != (2,) or not bool(ends.isfinite().all() & (ends[0] != ends[1])):
        raise InputDataError(f"bounds must be two different finite numbers; got {ends.tolist()}.")
    along = _along(first, dim, ends, num_points)
    functions = [PsychometricFunction.of(member, kind) for member in members]
    warn_of_few_answers(model)
    lines = X.reshape(-1, 1, first.dim).repeat(1, num_points, 1)
    lines[..., dim] = along
    if not bool(lines.isfinite().all()):
        raise InputDataError(f"X contains NaN or infinite values in other columns than {dim}.")
    draws_each = -(-num_draws // len(members))
    tail = (1 - probability) / 2
    levels = torch.tensor([0.5, tail, 1 - tail], dtype=X.dtype, device=X.device)
    parts = [X.new_zeros(5, 0)]
    with torch.no_grad():
        for part in lines.split(max(1, MAX_ENTRIES // (draws_each * num_points))) if len(lines) else ():
            crossings = []
            for member, function in zip(members, functions, strict=True):
                excess = _draws(member, part, draws_each, seed) - function.latent_level(level)
                crossings.append(_first_crossing(function.sign * excess, along))
            at = torch.cat(crossings)
            # an infinite neighbour must not be interpolated with
            quantiles = torch.quantile(at, levels, dim=0, interpolation="nearest")
            below, above = (at < ends.min()).to(at).mean(0), (at > ends.max()).to(at).mean(0)
            parts.append(torch.stack([*quantiles, below, above]))
    return Threshold(*torch.cat(parts, dim=-1).reshape(5, *X.shape[:-1]))


def _along(model: LatentModel, position: int, ends: Tensor, num_points: int) -> Tensor:
    """Values of an input from one end to the other, in even steps of what the model takes of it."""
    if position in categories_of(model):
        raise InputDataError(f"dim must be an input with an order; the model reads input {position} as categories.")
    t = torch.linspace(0, 1, num_points, dtype=ends.dtype, device=ends.device)
    if position not in logarithmic_inputs(input_transform_of(model), model.dim):
        return ends[0] + (ends[1] - ends[0]) * t
    if not bool((ends > 0).all()):
        raise InputDataError(f"bounds of an input whose logarithm is taken must be positive; got {ends.tolist()}.")
    values = torch.lerp(ends[0].log(), ends[1].log(), t).exp()
    values[0], values[-1] = ends  # exactly
    return values


def _draws(member: LatentModel, lines: Tensor, num_draws: int, seed: int) -> Tensor:
    """Draws of the latent function along lines, `num_draws x N x num_points`."""
    posterior = member.latent_posterior(lines)
    if posterior.num_points != lines.shape[-2] or posterior.batch_shape != lines.shape[:-2]:
        raise UnsupportedError("threshold takes no models with batch dimensions, nor input transforms that add points.")
    generator = torch.Generator(lines.device).manual_seed(seed)
    shape = num_draws, 1, posterior.base_sample_shape[-1]
    base = torch.randn(shape, generator=generator, dtype=lines.dtype, device=lines.device)
    levels = (torch.arange(num_draws).to(base) + 0.5) / num_draws
    base[:, 0, 0] = torch.special.ndtri(levels)  # each draw of the rows as often as the others
    return posterior.rsample_from_base_samples(torch.Size([num_draws]), base).squeeze(-1)


def _first_crossing(excess: Tensor, along: Tensor) -> Tensor:
    """The value at which functions on a grid first reach 0; beyond its ends if they start there, or never do."""
    reached = excess >= 0
    after = reached.long().argmax(-1, keepdim=True)
    before = (after - 1).clamp(min=0)
    low, high = excess.gather(-1, before), excess.gather(-1, after)
    at = torch.lerp(along[before], along[after], low / (low - high)).squeeze(-1)
    beyond = torch.inf if along[0] < along[-1] else -torch.inf
    at = torch.where(reached[..., 0], -beyond, at)
    return torch.where(reached.any(-1), at, beyond)
