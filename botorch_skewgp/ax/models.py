"""The model class that Ax builds: a SkewGP in the units of a metric."""

from __future__ import annotations

from typing import Any

from ax.generators.torch.botorch_modular.utils import fit_botorch_model
from botorch.acquisition.objective import PosteriorTransform, ScalarizedPosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.posteriors import Posterior
from botorch.posteriors.transformed import TransformedPosterior
from botorch.utils.datasets import SupervisedDataset
from gpytorch.mlls import ExactMarginalLogLikelihood, MarginalLogLikelihood
from torch import Tensor

from botorch_skewgp.ax.data import ObservationDataset
from botorch_skewgp.likelihoods import ProbitLikelihood
from botorch_skewgp.likelihoods.defaults import VALIDITY_NOISE  # a label of Ax is what works
from botorch_skewgp.likelihoods.registry import Factory, default_likelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewGP
from botorch_skewgp.observations import Binary, Observation
from botorch_skewgp.posteriors import ProbabilityPosterior, SkewGPPosterior


class AxSkewGP(SkewGP):
    """A SkewGP whose outcome is an Ax metric; one of labels is reported as the probability of a 1."""

    @property
    def is_probability(self) -> bool:
        """Whether the metric has labels."""
        return all(isinstance(entry, Binary) for entry in self.observations)

    @classmethod
    def construct_inputs(cls, training_data: SupervisedDataset) -> dict[str, Any]:
        """The constructor's arguments; a part of an experiment has those of the whole, for cross-validation. Where low
        numbers are good, winners have low values of the latent function, which is the metric.
        """
        if not isinstance(training_data, ObservationDataset):
            return super().construct_inputs(training_data)
        observations = training_data.observations
        factories: dict[type[Observation], Factory] = {Binary: lambda *_: ProbitLikelihood(noise=VALIDITY_NOISE)}
        return {
            "train_X": training_data.X,
            "observations": [entry.reversed() for entry in observations] if training_data.minimize else observations,
            "likelihood": default_likelihood((), training_data.kinds, factories),
        }

    def posterior(  # type: ignore[override]
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
        judge: int | str | None = None,
    ) -> Posterior:
        """The posterior of the metric."""
        if judge is not None or not self.is_probability:
            return super().posterior(X, output_indices, observation_noise, posterior_transform, judge)
        latent = super().posterior(X, output_indices)
        assert isinstance(latent, SkewGPPosterior)
        posterior = ProbabilityPosterior(latent, self.likelihood.noise)
        if posterior_transform is None:
            return posterior
        if type(posterior_transform) is not ScalarizedPosteriorTransform:
            raise UnsupportedError(
                f"{type(posterior_transform).__name__} is not supported for the probability of a label; use a "
                "ScalarizedPosteriorTransform or an objective on samples."
            )
        weight, offset = posterior_transform.get_buffer("weights"), posterior_transform.offset
        return TransformedPosterior(
            posterior,
            sample_transform=lambda samples: weight * samples + offset,
            mean_transform=lambda mean, variance: weight * mean + offset,
            variance_transform=lambda mean, variance: weight.square() * variance,
        )


@fit_botorch_model.register(SkewGP)
def fit_skew_gp_for_ax(
    model: SkewGP, mll_class: type[MarginalLogLikelihood], mll_options: dict[str, Any] | None = None
) -> None:
    """Fit a SkewGP by its own evidence instead of Ax's default, which is for Gaussian data."""
    if mll_class is ExactMarginalLogLikelihood:
        mll_class = SkewGPMarginalLogLikelihood
    fit_gpytorch_mll(mll_class(model.likelihood, model, **(mll_options or {})))
