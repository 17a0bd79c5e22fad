r"""The base class of likelihoods: what it does with the reading of a kind, which the kinds only have to state."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import Likelihood
from gpytorch.priors import Prior
from torch import Tensor
from torch.distributions import Bernoulli, Categorical

from botorch_skewgp.likelihoods.best_of import best_of_probabilities
from botorch_skewgp.likelihoods.outcome_scale import OutcomeScale
from botorch_skewgp.likelihoods.parameters import LEAST_POSITIVE, ReadParameter, SetParameter
from botorch_skewgp.observations import Observation
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.rows import FantasyRows, Reading, Rows

NUM_SAMPLES = 1024  # of the latent function, over which probabilities of joint outcomes are averaged


class RowLikelihood(Likelihood):
    r"""A likelihood that is a product of factors `P(lower < a^T f + bias + v <= upper)`.

    Holds what is learned about how observations come about (noise, cut-points, widths) and no data, so that models may
    share it. A subclass states the `reading` of its kinds and, in `answers`, the points and outcomes of observations;
    rows, predictions and fantasies follow from these.
    """

    observation_types: ClassVar[tuple[type[Observation], ...]] = ()
    predicts_choices: ClassVar[bool] = False  # whether `marginal` takes which points can be chosen
    predicts: ClassVar[bool] = True  # whether new observations have a distribution, and not only those of the data

    @property
    def num_outputs(self) -> int:
        """The number of latent functions that observations are of."""
        return 1

    @property
    def takes_numbers(self) -> bool:
        """Whether new observations may be numbers, so that fantasies are numbers too."""
        return False

    @property
    def kinds_of_outcomes(self) -> tuple[type[Observation], ...]:
        """The kinds of observations that have a fixed set of outcomes, see `reading`."""
        return self.observation_types if self.predicts and not self.takes_numbers else ()

    @property
    def kind_of_duels(self) -> type[Observation]:
        r"""The kind of observations by which new duels of two points are told.

        Raises:
            InputDataError: If there is none.
        """
        kinds = (kind for kind in self.kinds_of_outcomes if kind.points_per_observation == 2)
        kind = next((kind for kind in kinds if self.for_kind(kind).num_outputs == 1), None)
        if kind is None:
            raise InputDataError(f"{self._name_and_kinds} and no duels; give a PreferenceLikelihood for them.")
        return kind

    @property
    def _reads_one_value(self) -> bool:
        """Whether an observation is about a single value of the latent function."""
        return self.observation_types[0].points_per_observation == 1 and self.num_outputs == 1

    def _register_positive(
        self, name: str, value: float | Tensor, learn: bool, prior: Prior | None, constraint: Interval | None
    ) -> None:
        """Register `raw_name` behind a constraint, for a class attribute `name = PositiveParameter()`."""
        raw = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64), requires_grad=learn)
        self.register_parameter(f"raw_{name}", raw)
        self.register_constraint(f"raw_{name}", GreaterThan(LEAST_POSITIVE) if constraint is None else constraint)
        if prior is not None:
            self.register_prior(f"{name}_prior", prior, ReadParameter(name), SetParameter(name))
        setattr(self, name, value)

    def _check_type(self, observation: Observation) -> None:
        if not isinstance(observation, self.observation_types):
            raise InputDataError(self._refusal(type(observation)))

    def _refusal(self, kind: type[Observation]) -> str:
        return (
            f"{self._name_and_kinds}; got {kind.__name__}. For several kinds at once give a MixedLikelihood, or none "
            "for the default."
        )

    @property
    def _name_and_kinds(self) -> str:
        names = " or ".join(taken.__name__ for taken in self.observation_types)
        return f"{type(self).__name__} takes {names} observations"

    def for_kind(self, kind: type[Observation]) -> RowLikelihood:
        r"""The likelihood that takes observations of a kind: this one, or a part of it.

        Args:
            kind: A class of observations.

        Raises:
            InputDataError: If no part takes them.
        """
        if not issubclass(kind, self.observation_types):
            raise InputDataError(self._refusal(kind))
        return self

    # What a kind states

    def reading(
        self,
        kind: type[Observation],
        like: Tensor,
        scale: OutcomeScale = OutcomeScale(),  # noqa: B008
        num_points: int | None = None,
    ) -> Reading:
        r"""What one observation of a kind reads, and the outcomes that it tells apart.

        Args:
            kind: A class of observations that this likelihood takes.
            like: Any tensor of the wanted dtype and device.
            scale: How outcomes relate to the latent function.
            num_points: The number of points that an observation is about, for kinds that leave it open; the least if
                `None`.

        Raises:
            UnsupportedError: If observations of the kind have no outcomes that could be told apart beforehand.
        """
        raise UnsupportedError(
            f"{kind.__name__} observations have no fixed set of outcomes to predict or to draw; pass numbers, labels "
            "or duels instead."
        )

    def answers(self, observation: Observation) -> tuple[Tensor, Tensor]:
        r"""The points that each observation is about, `m x k`, and its outcome, `m`.

        Args:
            observation: Observations of a kind that this likelihood is for.
        """
        raise NotImplementedError  # of likelihoods that write their rows themselves

    # What follows from it

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = OutcomeScale()) -> Rows:  # noqa: B008
        r"""Turn observations into rows, differentiable in this likelihood's parameters.

        Args:
            observation: Observations of a kind that this likelihood is for.
            like: Any tensor of the wanted dtype and device.
            scale: How outcomes relate to the latent function.

        Raises:
            InputDataError: If the observations are of another kind.
        """
        self._check_type(observation)
        return self.reading(type(observation), like, scale).rows(*self.answers(observation))

    def log_jacobian(self, observation: Observation, like: Tensor, scale: OutcomeScale = OutcomeScale()) -> Tensor:  # noqa: B008
        r"""By how much more log density every observation has than its row, which may be a warped number.

        Args:
            observation: Observations of a kind that this likelihood is for.
            like: Any tensor of the wanted dtype and device.
            scale: How outcomes relate to the latent function; its own derivative is not in it.

        Returns:
            A tensor with a number for each observation, or one zero for all.
        """
        return like.new_zeros(1)

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Any:
        r"""The distribution of a new observation given values of the latent function.

        Args:
            function_samples: A tensor of values of the latent function, in its own units: of any shape for kinds that
                read one point, `... x k` for kinds that compare `k` items.

        Returns:
            A Bernoulli distribution for two outcomes, else a categorical one; of the samples' shape for kinds that read
            one point, of shape `...` for others.

        Raises:
            InputDataError: If there are fewer values than an observation is about.
        """
        kind = self.observation_types[0]
        if self._reads_one_value:
            items, num_points = function_samples.unsqueeze(-1), None
        else:
            items, num_points = function_samples, self._check_num_items(kind, function_samples)
        reading = self.reading(kind, function_samples, num_points=num_points)
        return reading.distribution(reading.log_probabilities(items))

    def _check_num_items(self, kind: type[Observation], items: Tensor) -> int:
        k = items.shape[-1] if items.ndim else 0
        if k < kind.points_per_observation:
            raise InputDataError(
                "A comparison is between two or more items: function_samples must be ... x k with k of at least "
                f"{kind.points_per_observation}; got {tuple(items.shape)}."
            )
        return k

    def marginal(
        self,
        function_dist: MultivariateNormal | SkewGPPosterior,
        *args: Any,
        scale: OutcomeScale = OutcomeScale(),  # noqa: B008
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

    def reversed_marginal(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> Any:
        r"""The distribution of new observations of a function of which low values are good.

        That of kinds whose observations turn round, see `Observation.reversed`, differs from `marginal`.

        Args:
            posterior: A skewed posterior of the latent function at new points.
            scale: How outcomes relate to the latent function.
        """
        return self._predict(posterior, scale)

    def _predict(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> Any:
        """The distribution of new observations under a skewed posterior, in closed form where there is one."""
        kind, like = self.observation_types[0], posterior.mean
        at_points = self._reads_one_value
        if posterior.mean.shape[-2] < kind.points_per_observation:
            raise InputDataError(
                f"{kind.__name__} is about {kind.points_per_observation} or more points, of which X has "
                f"{posterior.mean.shape[-2]}. Give more, or ask for another kind alone: "
                "model.likelihood.for_kind(kind)(model.latent_posterior(X), scale=model.outcome_scale)."
            )
        reading = self.reading(kind, like, scale, None if at_points else posterior.mean.shape[-2])
        if not reading.is_single and self.num_outputs == 1 and reading.is_choice:
            return Categorical(probs=best_of_probabilities(posterior, reading.noise))
        if not reading.is_single:
            samples = SobolQMCNormalSampler(torch.Size([NUM_SAMPLES]), seed=0)(posterior)
            items = samples if self.num_outputs > 1 else samples.squeeze(-1)
            return Categorical(probs=reading.log_probabilities(items).exp().mean(0))
        read = posterior if at_points else posterior.affine(reading.weight)
        return outcome_distribution(read, reading, squeeze=not at_points)

    def __call__(self, input: Any, *args: Any, **kwargs: Any) -> Any:
        r"""`forward` for a tensor of values of the latent function, `marginal` for a distribution of it."""
        if isinstance(input, SkewGPPosterior):
            return self.marginal(input, *args, **kwargs)
        return super().__call__(input, *args, **kwargs)

    def fantasy_rows(self, noisy: Tensor, scale: OutcomeScale) -> FantasyRows:
        r"""What a new observation would tell, for noisy values of the latent function that it comes from.

        Args:
            noisy: A `batch_shape x q` tensor of values of `f(x) + v`.
            scale: How outcomes relate to the latent function.

        Raises:
            UnsupportedError: If there are fewer points than an observation is about, or the likelihood's observations
                have no fixed set of outcomes.
        """
        kind, q = self.observation_types[0], noisy.shape[-1]
        if kind.points_per_observation == 1:
            reading = self.reading(kind, noisy, scale)
            return reading.fantasy_rows_at_points(reading.outcome_of(noisy.unsqueeze(-1)))
        if q < kind.points_per_observation:
            raise UnsupportedError(
                "A comparison needs two or more points in X; to compare one new point with an old one, put both in X."
            )
        reading = self.reading(kind, noisy, scale, q)
        return reading.fantasy_rows(reading.outcome_of(noisy))

    def noise_of_numbers(self, X: Tensor) -> Tensor:
        r"""The variance of the noise of numbers at new points, for likelihoods that take numbers; see `latent_noise`.

        Args:
            X: A `batch_shape x q x d` tensor.

        Raises:
            InputDataError: If new observations are no numbers.
        """
        if not self.takes_numbers:
            raise InputDataError(f"{self._name_and_kinds} and no numbers; give a NumericLikelihood for them.")
        return self.latent_noise(X)

    def latent_noise(self, X: Tensor) -> Tensor:
        r"""The variance of the noise with which the latent function is read at new points.

        Args:
            X: A `batch_shape x q x d` tensor.

        Returns:
            A tensor that broadcasts to `batch_shape x q x num_outputs`, in squared units of the latent function.

        Raises:
            UnsupportedError: If the likelihood has no single noise level.
        """
        raise UnsupportedError(
            f"{type(self).__name__} has no single noise level; pass the variances as observation_noise."
        )


def outcome_distribution(read: SkewGPPosterior, reading: Reading, squeeze: bool = False) -> Bernoulli | Categorical:
    r"""The distribution of the outcomes of a single reading under a skewed posterior, in closed form.

    Args:
        read: The posterior of what is read, without noise.
        reading: The reading.
        squeeze: Whether to drop the posterior's last two dimensions, those of points and outputs.
    """
    noisy = read.add_noise(reading.variance)
    above = [noisy.probability_above(cut) for cut in reading.cutpoints[0]]
    if reading.num_outcomes == 2:
        probability = above[0] if reading.highest == 1 else noisy.cdf(reading.cutpoints[0, 0])
        return Bernoulli(probs=probability.squeeze(-1).squeeze(-1) if squeeze else probability)
    below = [noisy.cdf(cut) for cut in reading.cutpoints[0]]
    cells = [below[0], *(high - low for low, high in pairwise(below)), above[-1]]
    probabilities = torch.stack([cells[i] for i in reading.outcomes[:, 0, 0].tolist()], dim=-1)
    return Categorical(probs=probabilities.squeeze(-2).squeeze(-2) if squeeze else probabilities)
