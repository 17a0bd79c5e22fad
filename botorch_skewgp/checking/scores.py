r"""Scores of predictions on new data.

.. [Benavoli2020skew] A. Benavoli, D. Azzimonti, D. Piga. Skew Gaussian processes for classification. Machine Learning
   109, 2020.
"""

from __future__ import annotations

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.observations.checks import as_tensor


def information_score(probability: Tensor, labels: Tensor) -> Tensor:
    r"""The average information of predicted probabilities on labels, in bits ([Benavoli2020skew]_, section 6).

    `1 + mean(y log2 p + (1 - y) log2(1 - p))`: 1 for certain and right predictions, 0 for a coin's, negative for worse.

    Args:
        probability: A `batch_shape x m` tensor of probabilities of label 1, for instance `model.predictive(X).probs`.
        labels: An `m`-dim tensor of 0 and 1.

    Returns:
        A tensor of shape `batch_shape`.

    Raises:
        InputDataError: If a label is neither 0 nor 1, or a probability is not between 0 and 1.
    """
    probability = as_tensor(probability, "probability")
    labels = as_tensor(labels, "labels").to(probability)
    if ((labels != 0) & (labels != 1)).any():
        raise InputDataError("labels must hold 0 and 1.")
    if not ((probability >= 0) & (probability <= 1)).all():
        raise InputDataError("probability must be between 0 and 1.")
    of_label = torch.where(labels == 1, probability, 1 - probability)
    return 1 + of_label.log2().mean(-1)
