r"""The likelihood of class labels and label graphs, with one latent function per label.

.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
"""

from __future__ import annotations

from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor
from torch.distributions import Categorical

from botorch_skewgp.likelihoods.base import RowLikelihood
from botorch_skewgp.likelihoods.outcome_scale import UNIT, OutcomeScale
from botorch_skewgp.likelihoods.probit import NoisyValueLikelihood
from botorch_skewgp.observations import LabelPreference, Observation
from botorch_skewgp.observations.checks import MAX_CATEGORIES, as_count
from botorch_skewgp.observations.observation import Kind
from botorch_skewgp.rows import Reading, Rows, shared_noise_rows


class LabelPreferenceLikelihood(NoisyValueLikelihood):
    r"""`P(l beats k at x) = Phi((f_l(x) - f_k(x)) / sqrt(2 noise))` ([Benavoli2021unified]_, equation (5)).

    Args:
        num_labels: The number of labels, hence of latent functions.
        kwargs: The other arguments are those of `NoisyValueLikelihood`; the noise is that of one label.
    """

    observation_types = (LabelPreference,)

    def __init__(self, num_labels: int, *args: Any, **kwargs: Any) -> None:
        num_labels = as_count(num_labels, "num_labels", most=MAX_CATEGORIES)
        super().__init__(*args, **kwargs)
        self.num_labels = num_labels

    @property
    def num_outputs(self) -> int:
        """One latent function for each label."""
        return self.num_labels

    def latent_noise(self, X: Tensor) -> Tensor:
        """Not defined: the noise is that of labels, not of the latent functions."""
        return RowLikelihood.latent_noise(self, X)

    def reading(self, kind: Kind, like: Tensor, scale: OutcomeScale = UNIT, num_points: int | None = None) -> Reading:
        """The best label at a point."""
        return Reading.choice(self.num_labels, self.noise, like, self._slips(self.num_labels, like))

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = UNIT) -> Rows:
        """One row per preference of a label over another; those of one event share each label's noise.

        Raises `InputDataError` for another number of labels.
        """
        self.for_kind(type(observation))
        assert isinstance(observation, LabelPreference)
        if observation.num_labels != self.num_labels:
            raise InputDataError(
                f"The observations have {observation.num_labels} labels, the likelihood {self.num_labels}; give "
                f"LabelPreferenceLikelihood({observation.num_labels})."
            )
        labels, index = observation.labels, observation.index.unsqueeze(-1).expand(-1, 2)
        rows = shared_noise_rows(labels, observation.event, self.noise, like, index, labels)
        event = observation.event.unique(return_inverse=True)[1]
        size = event.bincount()[event]
        best = torch.full_like(size, -1).scatter_reduce(0, event, labels[:, 0].to(event), "amax")[event]
        least = torch.full_like(size, self.num_labels).scatter_reduce(0, event, labels[:, 0].to(event), "amin")[event]
        is_class = (best == least) & (size == self.num_labels - 1)  # one label above all others
        num_outcomes = torch.where(is_class, float(self.num_labels), 2.0**size)
        return self._with_slips(rows, observation.judge, num_outcomes, event)

    def answer_of_rows(self, rows: Rows) -> Tensor:
        """One for each row; rows of one event are slips together."""
        return torch.arange(rows.num_rows, device=rows.noise.device)

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Categorical:
        """The distribution of the label that wins, from `... x num_labels` values; others raise `InputDataError`."""
        if function_samples.shape[-1] != self.num_labels:
            raise InputDataError(
                f"function_samples must be ... x {self.num_labels}, one value per label; got shape "
                f"{tuple(function_samples.shape)}."
            )
        reading = self.reading(LabelPreference, function_samples)
        return Categorical(logits=reading.log_probabilities(function_samples))
