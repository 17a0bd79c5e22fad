r"""Gauss-Legendre quadrature, by the eigenvalues of the Jacobi matrix ([Golub1969quadrature]_).

.. [Golub1969quadrature] G. H. Golub, J. H. Welsch. Calculation of Gauss quadrature rules. Mathematics of Computation
   23, 1969.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor


@lru_cache(maxsize=64)
def gauss_legendre(n: int) -> tuple[Tensor, Tensor]:
    r"""Nodes and weights for integrals over `[-1, 1]`, exact for polynomials of degree `2 n - 1`.

    Args:
        n: The number of nodes.

    Returns:
        The nodes in increasing order and the weights, which sum to 2; both `n`, in double precision.
    """
    k = torch.arange(1, n, dtype=torch.float64)
    off_diagonal = k / (4 * k.square() - 1).sqrt()
    nodes, vectors = torch.linalg.eigh(torch.diag(off_diagonal, 1) + torch.diag(off_diagonal, -1))
    return 0.5 * (nodes - nodes.flip(0)), vectors[0].square() + vectors[0].square().flip(0)
