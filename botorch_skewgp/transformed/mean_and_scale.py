r"""The laws of the mean's coefficients and of the scale, which posteriors integrate out.

.. [DeOliveira1997btg] V. De Oliveira, B. Kedem, D. A. Short. Bayesian prediction of transformed Gaussian random fields.
   Journal of the American Statistical Association 92, 1997.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import Categorical, Gamma, MixtureSameFamily


class MeanAndScale(NamedTuple):
    r"""The joint law of the coefficients `beta` of the mean and the precision `tau` of the process, given the data.

    At every node `tau` has a Gamma distribution, and given it `beta` is normal with covariance `A^-1 / tau`
    ([DeOliveira1997btg]_); both are in units of the warped outcome there.

    Args:
        probabilities: The probabilities of the nodes, `S`.
        coefficients: The locations `b` of `beta`, `S x p`.
        root: The lower Cholesky factor of `A`, `S x p x p`.
        concentration: The shape parameter of the Gamma distributions, `(n - p) / 2`.
        rate: Their rates, `q / 2`, `S`.

    Example:
        >>> law = transformed.mean_and_scale()
        >>> law.precision.mean, law.probabilities @ law.coefficients
    """

    probabilities: Tensor
    coefficients: Tensor
    root: Tensor
    concentration: float
    rate: Tensor

    @property
    def precision(self) -> MixtureSameFamily:
        """The law of `tau`, a mixture of Gamma distributions."""
        return MixtureSameFamily(Categorical(self.probabilities), Gamma(self.concentration, self.rate))

    def sample(self, num: int) -> tuple[Tensor, Tensor]:
        r"""Draws of both.

        Args:
            num: Their number.

        Returns:
            `beta`, `num x p`, and `tau`, `num`.
        """
        node = Categorical(self.probabilities).sample(torch.Size([num]))
        precision = Gamma(self.concentration, self.rate[node]).sample()
        normal = torch.randn_like(self.coefficients[node]).unsqueeze(-1)
        deviation = torch.linalg.solve_triangular(self.root[node].mT, normal, upper=True).squeeze(-1)
        return self.coefficients[node] + deviation / precision.sqrt().unsqueeze(-1), precision
