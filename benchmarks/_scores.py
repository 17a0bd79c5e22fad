"""The score of predicted probabilities in the papers' tables.

.. [Benavoli2020skew] A. Benavoli, D. Azzimonti, D. Piga. Skew Gaussian processes for classification. Machine Learning
   109, 2020.
"""

from __future__ import annotations

import torch
from torch import Tensor


def information_score(probability: Tensor, labels: Tensor) -> Tensor:
    """The average information of probabilities of label 1 on labels, in bits ([Benavoli2020skew]_, section 6).

    `1 + mean(y log2 p + (1 - y) log2(1 - p))`: 1 for certain and right predictions, 0 for a coin's, negative for worse.
    """
    return 1 + torch.where(labels == 1, probability, 1 - probability).log2().mean(-1)
