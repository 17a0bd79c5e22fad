r"""The base class of likelihoods: rows, predictions and fantasies from the reading that a subclass states."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.distributions import MultivariateNormal
from torch import Tensor
from torch.distributions import Bernoulli, Categorical

from botorch_skewgp.likelihoods.outcome_scale import UNIT, OutcomeScale
from botorch_skewgp.likelihoods.parameters import JudgedLikelihood
from botorch_skewgp.likelihoods.predictions import averaged, best_of_probabilities
from botorch_skewgp.observations import Choice, Observation
from botorch_skewgp.observations.observation import Kind
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.rows import FantasyRows, Reading, Rows
from botorch_skewgp.truncated.step_factor import Heights

NUM_SAMPLES = 1024  # of the latent function, for probabilities of joint outcomes


class RowLikelihood(JudgedLikelihood):
    r"""A likelihood that is a product of factors `P(lower < a^T f + bias + v <= upper)`.

    Holds parameters (noise, cut-points, widths) and no data. A model has a copy, `model.likelihood`, which shares them
    with the one that it was given, see `SkewGP`. A subclass states the `reading` of its kinds and, in `answers`, the
    points and outcomes of observations; rows, predictions and fantasies follow from these.

    Raises:
        InputDataError: If a noise, width or gap is not positive, a rate not in [0, 1), or an argument of another class.
    """

    observation_types: ClassVar[tuple[Kind, ...]] = ()
    predicts_choices: ClassVar[bool] = False  # whether `marginal` takes `available`
    predicts: ClassVar[bool] = True  # whether new observations have a distribution
    takes_numbers: ClassVar[bool] = False  # whether new observations, and so fantasies, may be numbers

    @property
    def num_outputs(self) -> int:
        """The number of latent functions."""
        return 1

    @property
    def kinds_of_outcomes(self) -> tuple[Kind, ...]:
        """The kinds of observations that have a fixed set of outcomes, see `reading`."""
        return self.observation_types if self.predicts and not self.takes_numbers else ()

    @property
    def kind_of_duels(self) -> Kind:
        """The kind of observation for new duels; raises `InputDataError` if there is none."""
        kinds = (kind for kind in self.kinds_of_outcomes if kind.points_per_observation == 2)
        kind = next((kind for kind in kinds if self.for_kind(kind).num_outputs == 1), None)
        if kind is None:
            raise InputDataError(f"{self._name_and_kinds} and no duels; give a PreferenceLikelihood for them.")
        return kind

    def kind_of_choices(self, num_points: int) -> Kind:
        """The kind of observation for the best of some points; raises `InputDataError` if there is none."""
        if num_points == 2:
            return self.kind_of_duels
        self.for_kind(Choice)  # raises
        return Choice

    @property
    def _reads_one_value(self) -> bool:
        """Whether an observation reads a single value of the latent function."""
        return self.observation_types[0].points_per_observation == 1 and self.num_outputs == 1

    def answer_of_rows(self, observation: Observation, rows: Rows) -> Tensor:
        """The number of each row's answer, among those of its observation."""
        return torch.arange(rows.num_rows, device=rows.noise.device)

    def share_of_slips(self, observation: Observation, rows: Rows) -> Tensor | float:
        """The share of slips among slips and guesses: one number, or one for each row."""
        return 1.0

    @property
    def _name_and_kinds(self) -> str:
        names = " or ".join(taken.__name__ for taken in self.observation_types)
        return f"{type(self).__name__} takes {names} observations"

    def for_kind(self, kind: Kind) -> RowLikelihood:
        """The likelihood that takes observations of a kind: this one, or a part of it; else raises `InputDataError`."""
        if not (isinstance(kind, type) and issubclass(kind, Observation)):
            raise InputDataError(
                f"kind must be a class of observations such as Preference; got a {type(kind).__name__}."
            )
        if not issubclass(kind, self.observation_types):
            raise InputDataError(
                f"{self._name_and_kinds}; got {kind.__name__}. For several kinds give a MixedLikelihood, or no "
                "likelihood for the default."
            )
        return self

    # Stated by a kind

    def reading(self, kind: Kind, like: Tensor, scale: OutcomeScale = UNIT, num_points: int | None = None) -> Reading:
        r"""The reading of one observation of a kind, with its outcomes.

        Args:
            kind: A class of observations that this likelihood takes.
            like: Any tensor of the wanted dtype and device.
            scale: How outcomes relate to the latent function.
            num_points: The number of points of an observation, for kinds with any number; the minimum if `None`.

        Raises:
            UnsupportedError: If observations of the kind have no fixed set of outcomes.
        """
        raise UnsupportedError(
            f"{kind.__name__} observations have no fixed set of outcomes and cannot be predicted or drawn; ask for "
            "another kind of the same model, or for a map of the function, SkewGPPosterior.affine(weight, bias)."
        )

    def answers(self, observation: Observation) -> tuple[Tensor, Tensor]:
        """The points of each observation, `m x k`, and its outcome, `m`."""
        raise NotImplementedError  # likelihoods that override `rows` need no answers

    # Derived from the reading

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = UNIT) -> Rows:
        """The rows of observations, like `like`, differentiable in the parameters; `InputDataError` for other kinds."""
        self.for_kind(type(observation))
        reading = self.reading(type(observation), like, scale)
        (index, outcome) = self.answers(observation)
        rows = reading.rows(index, outcome).weighted(observation.answer_weights)
        slips = reading.slips
        if slips is not None and observation.judge is not None and self.slip.numel() > 1:
            slips = self._slips(reading.num_outcomes, like, observation.judge)
            rows = rows.of_parameters(observation.judge)
        if slips is None:
            return rows
        slips = slips.expand(len(outcome), slips.shape[-1])
        outside = slips.gather(-1, outcome.to(slips.device).unsqueeze(-1)).squeeze(-1)
        return replace(rows, heights=Heights(outside, 1 - slips.sum(-1)))

    def log_jacobian(self, observation: Observation, like: Tensor, scale: OutcomeScale = UNIT) -> Tensor:
        """Log densities of observations less those of their warped rows, without the scale's; `m`, or one zero."""
        return like.new_zeros(1)

    def forward(self, function_samples: Tensor, *args: Any, scale: OutcomeScale = UNIT, **kwargs: Any) -> Any:
        """The distribution of a new observation given values of the latent function, in its own units; thresholds and
        cut-points that are given in units of the outcome are brought to them by `scale`, a model's `outcome_scale`.

        Values are of any shape for kinds that read one point, as is then the distribution, and `... x k` for kinds that
        compare `k` items; fewer raise `InputDataError`. It is Bernoulli for two outcomes, else categorical.
        """
        kind = self.observation_types[0]
        items = function_samples
        num_points = None
        if self._reads_one_value:
            items = function_samples.unsqueeze(-1)
        else:
            num_points = items.shape[-1] if items.ndim else 0
            if num_points < kind.points_per_observation:
                raise InputDataError(
                    f"function_samples must be ... x k with k of at least {kind.points_per_observation}, a value for "
                    f"each compared item; got {tuple(items.shape)}."
                )
        reading = self.reading(kind, function_samples, scale, num_points)
        logits = reading.log_probabilities(items)
        if reading.is_single and reading.num_outcomes == 2:
            return Bernoulli(logits=logits[..., 1] - logits[..., 0])
        return Categorical(logits=logits)

    def marginal(
        self,
        function_dist: MultivariateNormal | SkewGPPosterior,
        *args: Any,
        scale: OutcomeScale = UNIT,
        **kwargs: Any,
    ) -> Any:
        r"""The distribution of new observations, averaged over a distribution of the latent function.

        Args:
            function_dist: A Gaussian distribution or a skewed posterior of the latent function at new points.
            scale: How outcomes relate to the latent function.
        """
        if not isinstance(function_dist, SkewGPPosterior):
            function_dist = SkewGPPosterior.from_gaussian(function_dist)
        return self._predict(function_dist, scale)

    def _predict(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> Any:
        """The distribution of new observations under a skewed posterior, in closed form where there is one."""
        around = self.around_judge()
        if around is not None:
            return averaged([member.marginal(posterior, scale=scale) for member in around[0]], around[1])
        kind = self.observation_types[0]
        like = posterior.mean
        at_points = self._reads_one_value
        if posterior.mean.shape[-2] < kind.points_per_observation:
            raise InputDataError(
                f"{kind.__name__} needs {kind.points_per_observation} or more points; X has "
                f"{posterior.mean.shape[-2]}. Give more, or predict another kind: "
                "model.likelihood.for_kind(kind)(model.latent_posterior(X), scale=model.outcome_scale)."
            )
        reading = self.reading(kind, like, scale, None if at_points else posterior.mean.shape[-2])
        if not reading.is_single and self.num_outputs == 1 and reading.is_choice:
            return Categorical(probs=reading.with_slips(best_of_probabilities(posterior, reading.noise)))
        if not reading.is_single:
            samples = SobolQMCNormalSampler(torch.Size([NUM_SAMPLES]), seed=0)(posterior)
            items = samples if self.num_outputs > 1 else samples.squeeze(-1)
            return Categorical(probs=reading.log_probabilities(items).exp().mean(0))
        read = posterior if at_points else posterior.affine(reading.weight)
        return _outcomes(read, reading, squeeze=not at_points)

    def __call__(self, input: Any, *args: Any, **kwargs: Any) -> Any:
        r"""`forward` for a tensor of values of the latent function, `marginal` for a distribution of it."""
        if isinstance(input, SkewGPPosterior):
            return self.marginal(input, *args, **kwargs)
        return super().__call__(input, *args, **kwargs)

    def fantasy_rows(self, noisy: Tensor, scale: OutcomeScale, seed: int = 0) -> FantasyRows:
        """The rows of a new observation, given noisy values `f(x) + v`, `batch_shape x q`, and the seed of slips;
        raises `UnsupportedError` if there are fewer points than an observation needs, or its outcomes are no fixed set.
        """
        kind = self.observation_types[0]
        q = noisy.shape[-1]
        generator = torch.Generator().manual_seed(seed)
        if kind.points_per_observation == 1:
            reading = self.reading(kind, noisy, scale)
            outcome = reading.slipped(reading.outcome_of(noisy.unsqueeze(-1)), generator)
            return reading.rows_over(torch.arange(q, device=noisy.device).unsqueeze(-1), outcome, q)
        if q < kind.points_per_observation:
            raise UnsupportedError(
                "A comparison needs two or more points in X; to compare one new point with an old one, put both in X."
            )
        reading = self.reading(kind, noisy, scale, q)
        return reading.fantasy_rows(reading.slipped(reading.outcome_of(noisy), generator))

    def noise_of_numbers(self, X: Tensor) -> Tensor:
        """The `latent_noise` of likelihoods that take numbers; raises `InputDataError` for others."""
        if not self.takes_numbers:
            raise InputDataError(f"{self._name_and_kinds} and no numbers; give a NumericLikelihood for them.")
        return self.latent_noise(X)

    def with_noise_of_numbers(self, noise: Tensor) -> Self:
        """The likelihood, with the same parameters, where the noise variance of new numbers is a known one."""
        return self

    def latent_noise(self, X: Tensor) -> Tensor:
        """The noise variance of the latent function, in its squared units, at `batch_shape x q x d` points, which
        broadcasts to `batch_shape x q x num_outputs`. Raises `UnsupportedError` if there is no single noise level.
        """
        raise UnsupportedError(
            f"{type(self).__name__} has no single noise level; pass the variances as observation_noise."
        )


def _outcomes(read: SkewGPPosterior, reading: Reading, squeeze: bool) -> Bernoulli | Categorical:
    """The distribution of the outcomes of a single reading, with or without dimensions of points and outputs."""
    noisy = read.add_noise(reading.variance)
    above = [noisy.probability_above(cut) for cut in reading.cutpoints[0]]
    if reading.num_outcomes == 2:
        probability = above[0] if reading.highest == 1 else noisy.cdf(reading.cutpoints[0, 0])
        if reading.slips is not None:
            probability = probability * (1 - reading.slips.sum()) + reading.slips[1]
        return Bernoulli(probs=probability.squeeze(-1).squeeze(-1) if squeeze else probability)
    below = [noisy.cdf(cut) for cut in reading.cutpoints[0]]
    cells = [below[0], *(high - low for low, high in pairwise(below)), above[-1]]
    probabilities = reading.with_slips(torch.stack([cells[i] for i in reading.outcomes[:, 0, 0].tolist()], dim=-1))
    return Categorical(probs=probabilities.squeeze(-2).squeeze(-2) if squeeze else probabilities)
