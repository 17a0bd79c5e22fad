"""Short tensors."""

import torch
from torch import Tensor


def tensor(*values) -> Tensor:
    """The values as a tensor of double precision."""
    return torch.tensor(values, dtype=torch.float64)
