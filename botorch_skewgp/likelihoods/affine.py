r"""Likelihoods without structure of their own: the general affine probit, label preferences, and mixtures of kinds.

.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.constraints import Interval
from gpytorch.priors import LogNormalPrior, Prior
from torch import Tensor
from torch.distributions import Categorical

from botorch_skewgp.likelihoods.base import (
    OutcomeScale,
    PositiveParameter,
    RowLikelihood,
    best_of,
    comparison_rows,
)
from botorch_skewgp.likelihoods.numeric import NumericLikelihood
from botorch_skewgp.likelihoods.preference import PreferenceLikelihood
from botorch_skewgp.likelihoods.probit import OrdinalLikelihood, ProbitLikelihood, ValidityLikelihood
from botorch_skewgp.likelihoods.rows import FantasyRows, Rows
from botorch_skewgp.observations import (
    AffineProbit,
    Binary,
    Censored,
    LabelPreference,
    Numeric,
    Observation,
    Ordinal,
    Tie,
    Validity,
)
from botorch_skewgp.posteriors import SkewGPPosterior


class ProbitAffineLikelihood(RowLikelihood):
    r"""`P(lower < W f + Z + v <= upper)` with `v ~ N(0, Sigma)` ([Benavoli2021unified]_, equation (4)).

    Has no parameters: weights, shifts and the noise covariance come with the observations.
    """

    observation_types = (AffineProbit,)

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = OutcomeScale()) -> Rows:  # noqa: B008
        """The rows as given; the least eigenvalue of the noise covariance counts as independent noise."""
        self._check_type(observation)
        assert isinstance(observation, AffineProbit)
        weight = observation.weight.to(like)
        eigenvalues, vectors = torch.linalg.eigh(observation.covariance.to(like))
        own = eigenvalues[:1].clamp(min=0)  # checked to be positive semi-definite; rounding only
        shared = (eigenvalues - own).clamp(min=0)
        keep = shared > 1e3 * torch.finfo(like.dtype).eps * eigenvalues.abs().amax() if len(shared) else shared > 0
        root = vectors[:, keep] * shared[keep].sqrt()
        m = weight.shape[0]
        return Rows(
            index=observation.index.to(like.device).expand(m, -1),
            coefficient=weight,
            bias=observation.bias.to(like),
            lower=observation.lower.to(like),
            upper=observation.upper.to(like),
            noise=own.expand(m),
            noise_root=root if root.shape[-1] else None,
        )

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Not defined: a new affine observation needs its own weights."""
        raise UnsupportedError("Use SkewGPPosterior.affine(weight, bias) and its probability functions instead.")

    def _predict(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> Any:
        raise UnsupportedError("Use SkewGPPosterior.affine(weight, bias) and its probability functions instead.")


class LabelPreferenceLikelihood(RowLikelihood):
    r"""`P(l beats k at x) = Phi((f_l(x) - f_k(x)) / sqrt(2 noise))` ([Benavoli2021unified]_, equation (5)).

    Args:
        num_labels: The number of labels, hence of latent functions.
        noise: The variance of one label's noise; fixed at 1 unless told otherwise.
        learn_noise: Whether the noise is a parameter to fit.
        noise_prior: A prior on the noise variance.
        noise_constraint: A constraint on the noise variance; positive by default.
    """

    observation_types = (LabelPreference,)
    noise = PositiveParameter()

    def __init__(
        self,
        num_labels: int,
        noise: float | Tensor = 1.0,
        learn_noise: bool = False,
        noise_prior: Prior | None = None,
        noise_constraint: Interval | None = None,
    ) -> None:
        super().__init__()
        self.num_labels = self.num_outputs = num_labels
        self._register_positive("noise", noise, learn_noise, noise_prior, noise_constraint)

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = OutcomeScale()) -> Rows:  # noqa: B008
        """One row per preference; columns of the latent functions are stacked with the label fastest."""
        self._check_type(observation)
        assert isinstance(observation, LabelPreference)
        if observation.num_labels != self.num_labels:
            raise InputDataError(
                f"The observations have {observation.num_labels} labels, their likelihood {self.num_labels}."
            )
        column = observation.index.unsqueeze(-1) * self.num_labels + observation.labels
        return comparison_rows(observation.labels, observation.event, column, self.noise, like)

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Categorical:
        r"""The law of the label that wins at new points.

        Args:
            function_samples: A `... x num_labels` tensor of values of the latent functions.
        """
        if function_samples.shape[-1] != self.num_labels:
            raise InputDataError(
                f"function_samples must be ... x {self.num_labels}, one value per label; got shape "
                f"{tuple(function_samples.shape)}."
            )
        if self.num_labels == 2:
            margin = (function_samples[..., 0] - function_samples[..., 1]) / (2 * self.noise).sqrt()
            return Categorical(logits=torch.special.log_ndtr(torch.stack([margin, -margin], dim=-1)))
        return Categorical(probs=best_of(function_samples / self.noise.sqrt()))

    def _predict(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> Categorical:
        samples = SobolQMCNormalSampler(torch.Size([1024]), seed=0)(posterior)
        return Categorical(probs=self.forward(samples).probs.mean(0))


class MixedLikelihood(RowLikelihood):
    r"""Several likelihoods over one latent function; each kind of observation goes to the first that takes it.

    Example:
        >>> MixedLikelihood(NumericLikelihood(), PreferenceLikelihood(learn_noise=True))
    """

    def __init__(self, *likelihoods: RowLikelihood) -> None:
        r"""
        Args:
            likelihoods: The likelihoods, in order of precedence.
        """
        super().__init__()
        self._modules_of_kinds = torch.nn.ModuleList(likelihoods)

    @property
    def likelihoods(self) -> list[RowLikelihood]:
        """The likelihoods, in order of precedence."""
        return list(self._modules_of_kinds)  # type: ignore[arg-type]

    @property
    def observation_types(self) -> tuple[type[Observation], ...]:  # type: ignore[override]
        """All kinds of observations that one of the likelihoods takes."""
        return tuple(kind for likelihood in self.likelihoods for kind in likelihood.observation_types)

    def for_kind(self, kind: type[Observation]) -> RowLikelihood:
        """The first likelihood that takes observations of a kind."""
        for likelihood in self.likelihoods:
            if issubclass(kind, likelihood.observation_types):
                return likelihood
        names = ", ".join(type(likelihood).__name__ for likelihood in self.likelihoods)
        raise InputDataError(f"None of {names} takes {kind.__name__} observations; add a likelihood for them.")

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = OutcomeScale()) -> Rows:  # noqa: B008
        """The rows of the likelihood that takes the observations."""
        return self.for_kind(type(observation)).rows(observation, like, scale)

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> list[Any]:
        """The laws of new observations of every kind, in the order of the likelihoods."""
        return [likelihood(function_samples, *args, **kwargs) for likelihood in self.likelihoods]

    def _predict(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> list[Any]:
        return [likelihood(posterior, scale=scale) for likelihood in self.likelihoods]

    def fantasy_rows(self, noisy: Tensor, scale: OutcomeScale) -> FantasyRows:
        """The new observation of the first likelihood."""
        return self.likelihoods[0].fantasy_rows(noisy, scale)

    def latent_noise(self, X: Tensor) -> Tensor:
        """The noise of numbers if there are such, else of the first likelihood."""
        numeric: list[RowLikelihood] = [entry for entry in self.likelihoods if isinstance(entry, NumericLikelihood)]
        return (numeric or self.likelihoods)[0].latent_noise(X)


def default_likelihood(observations: Sequence[Observation]) -> RowLikelihood:
    r"""The likelihood with default parameters for observations of given kinds.

    Without numbers, the noise of labels, grades and comparisons is fixed at 1, which identifies the scale of the latent
    function. With numbers (which fix that scale themselves) it is learned, with a LogNormal(-2, 1.5) prior on its
    variance.

    Args:
        observations: The observations.
    """
    kinds = [type(entry) for entry in observations]
    anchored = any(kind in (Numeric, Censored) for kind in kinds)
    noise: dict[str, Any] = {}
    if anchored:
        noise = {"noise": 0.1, "learn_noise": True, "noise_prior": LogNormalPrior(loc=-2.0, scale=1.5)}
    likelihoods: list[RowLikelihood] = []
    for entry in observations:
        if any(isinstance(entry, likelihood.observation_types) for likelihood in likelihoods):
            continue
        if isinstance(entry, NumericLikelihood.observation_types):
            likelihoods.append(NumericLikelihood())
        elif isinstance(entry, PreferenceLikelihood.observation_types):
            likelihoods.append(PreferenceLikelihood(learn_tie_width=Tie in kinds, ties_allowed=Tie in kinds, **noise))
        elif isinstance(entry, Binary):
            likelihoods.append(ProbitLikelihood(**noise))
        elif isinstance(entry, Ordinal):
            likelihoods.append(OrdinalLikelihood(entry.num_grades, **noise))
        elif isinstance(entry, Validity):
            likelihoods.append(ValidityLikelihood(**noise))
        elif isinstance(entry, LabelPreference):
            likelihoods.append(LabelPreferenceLikelihood(entry.num_labels))
        elif isinstance(entry, AffineProbit):
            likelihoods.append(ProbitAffineLikelihood())
        else:
            raise InputDataError(f"No default likelihood is known for {type(entry).__name__}; pass one.")
    if not likelihoods:
        return NumericLikelihood()
    return likelihoods[0] if len(likelihoods) == 1 else MixedLikelihood(*likelihoods)
