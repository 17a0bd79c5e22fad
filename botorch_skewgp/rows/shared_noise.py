"""Rows of one judgement about several items, in which each item's noise is drawn once."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_skewgp.rows.rows import Rows


def shared_noise_rows(
    pairs: Tensor, event: Tensor, noise: Tensor, like: Tensor, index: Tensor | None = None, reads: Tensor | None = None
) -> Rows:
    r"""Rows `f(a) - f(b) + v_a - v_b > 0`, where comparisons of one event share each item's noise.

    An item's noise that only one comparison reads is independent; one that several read goes into the shared root.

    Args:
        pairs: A `p x 2` tensor of items, winner first, that name noises within an event.
        event: A `p`-dim tensor: the event of each comparison.
        noise: The variance of one item's noise; shape `1`.
        like: Any tensor of the wanted dtype and device.
        index: A `p x 2` tensor: the points of the items; the items themselves if `None`.
        reads: A `p x 2` tensor: what is read there, see `botorch_skewgp.rows.columns`.
    """
    p = pairs.shape[0]
    pairs, event = pairs.to(like.device), event.to(like.device)
    sign = torch.tensor([1.0, -1.0], dtype=like.dtype, device=like.device).expand(p, 2)
    key = torch.stack([event.unsqueeze(-1).expand_as(pairs), pairs], dim=-1).reshape(-1, 2)
    _, inverse, counts = key.unique(dim=0, return_inverse=True, return_counts=True)
    shared = counts > 1
    inverse = inverse.view(p, 2)
    noise = noise.to(like)
    own = noise * (~shared)[inverse].to(like).sum(-1)
    root = None
    if bool(shared.any()):
        weight = like.new_zeros(p, counts.shape[0]).scatter_add(-1, inverse, sign)
        root = noise.sqrt() * weight[:, shared]
    zeros = like.new_zeros(p)
    return Rows(
        index=pairs if index is None else index.to(like.device),
        coefficient=sign,
        bias=zeros,
        lower=zeros,
        upper=torch.full_like(zeros, torch.inf),
        noise=own,
        noise_root=root,
        reads=None if reads is None else reads.to(like.device),
    )
