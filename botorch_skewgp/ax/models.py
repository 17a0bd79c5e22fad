"""The model class that Ax builds: a SkewGP in the units of a metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from ax.generators.torch.botorch_modular.utils import fit_botorch_model
from botorch.acquisition.objective import PosteriorTransform, ScalarizedPosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform
from botorch.posteriors import Posterior
from botorch.posteriors.transformed import TransformedPosterior
from botorch.utils.datasets import SupervisedDataset
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from gpytorch.mlls import ExactMarginalLogLikelihood, MarginalLogLikelihood
from torch import Tensor

from botorch_skewgp.ax.data import ObservationDataset
from botorch_skewgp.likelihoods import ProbitLikelihood, RowLikelihood, ValidityLikelihood
from botorch_skewgp.likelihoods.defaults import VALIDITY_NOISE  # a label of Ax is what works
from botorch_skewgp.likelihoods.registry import Factory, default_likelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewGP, SkewPrior, default_covar_module
from botorch_skewgp.models.inputs import as_sequence
from botorch_skewgp.observations import Binary, Observation, Validity
from botorch_skewgp.posteriors import ProbabilityPosterior, SkewGPPosterior
from botorch_skewgp.truncated.draws import DrawSettings


class AxSkewGP(SkewGP):
    r"""A SkewGP whose outcome is an Ax metric.

    The latent function is the metric. Where low numbers are good (`minimize`), winners, choices and valid trials are
    those with low values; numbers and other readings are not changed. A metric of labels is reported as the probability
    of a 1 (`probability`).
    """

    def __init__(
        self,
        train_X: Tensor,
        observations: Any = None,
        likelihood: RowLikelihood | None = None,
        covar_module: Kernel | None = None,
        mean_module: Mean | None = None,
        skew_prior: SkewPrior | None = None,
        input_transform: InputTransform | None = None,
        outcome_transform: OutcomeTransform | None = None,
        draw_settings: DrawSettings | None = None,
        minimize: bool = False,
        probability: bool = False,
    ) -> None:
        super().__init__(
            train_X,
            _of_function(observations, minimize),
            likelihood,
            covar_module,
            mean_module,
            skew_prior,
            input_transform,
            outcome_transform,
            draw_settings,
        )
        self.minimize = minimize
        self.probability = probability

    @classmethod
    def construct_inputs(cls, training_data: SupervisedDataset) -> dict[str, Any]:
        """The constructor's arguments for a dataset of the SkewGP adapter, or for any that `SkewGP` takes."""
        if not isinstance(training_data, ObservationDataset):
            return super().construct_inputs(training_data)
        failures = all(entry.tells_validity for entry in training_data.observations)
        return {
            "train_X": training_data.X,
            "observations": training_data.observations,
            "likelihood": likelihood_of_kinds(training_data),
            # searches weighted by validity end higher with the prior of labels than with that of failures
            "covar_module": default_covar_module(training_data.X.shape[-1]) if failures else None,
            "minimize": training_data.minimize,
            "probability": training_data.probability,
        }

    def predictive(
        self, X: Tensor, judge: int | str | None = None, available: Tensor | None = None, none: bool = False
    ) -> Any:
        """The distribution of new observations at new points, as in `SkewGP`; low points win and are valid if the
        metric is minimised.
        """
        if not self.minimize or judge is not None:
            return super().predictive(X, judge, available, none)
        return self.likelihood.reversed_marginal(self.latent_posterior(X), self.outcome_scale)

    def condition_on_observations(
        self, X: Tensor, Y: Tensor | Observation | Sequence[Observation], noise: Tensor | None = None, **kwargs: Any
    ) -> Self:
        """A model with more data and the same hyperparameters, as in `SkewGP`."""
        if not isinstance(Y, Tensor):
            Y = _of_function(Y, self.minimize)
        elif self.minimize and not Y.is_floating_point():
            Y = Y.flip(-1)
        return super().condition_on_observations(X, Y, noise, **kwargs)

    def posterior(  # type: ignore[override]
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
        judge: int | str | None = None,
    ) -> Posterior:
        """The posterior of the metric."""
        if judge is not None:
            return self.for_judge(judge).posterior(X, output_indices, observation_noise, posterior_transform)
        if not self.probability:
            return super().posterior(X, output_indices, observation_noise, posterior_transform)
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


def likelihood_of_kinds(dataset: ObservationDataset) -> RowLikelihood:
    """The default likelihood of all kinds of an experiment, also of those that a part of its data lacks.

    Parts share parameters with the whole in cross-validation. Labels have the noise of validity, and the threshold of
    validity is learned; it starts at the worst number seen.
    """
    numbers = dataset.Y[~dataset.Y.isnan()]
    worst = torch.zeros(()) if not len(numbers) else numbers.max() if dataset.minimize else numbers.min()
    factories: dict[type[Observation], Factory] = {
        Binary: lambda observation, context: ProbitLikelihood(noise=VALIDITY_NOISE),
        Validity: lambda observation, context: ValidityLikelihood(worst, learn_threshold=True),
    }
    return default_likelihood((), dataset.kinds, factories)


def _of_function(observations: Observation | Sequence[Observation] | None, minimize: bool) -> tuple[Observation, ...]:
    """Observations of a metric as those of the latent function."""
    return tuple(entry.reversed() if minimize else entry for entry in as_sequence(observations))


@fit_botorch_model.register(SkewGP)
def fit_skew_gp_for_ax(
    model: SkewGP, mll_class: type[MarginalLogLikelihood], mll_options: dict[str, Any] | None = None
) -> None:
    """Fit a SkewGP by its own evidence instead of Ax's default, which is for Gaussian data."""
    if mll_class is ExactMarginalLogLikelihood:
        mll_class = SkewGPMarginalLogLikelihood
    fit_gpytorch_mll(mll_class(model.likelihood, model, **(mll_options or {})))
