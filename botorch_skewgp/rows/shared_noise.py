"""Rows of one judgement about several items, in which each item's noise is drawn once."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_skewgp.rows.rows import Rows


def shared_noise_rows(
    pairs: Tensor, event: Tensor, noise: Tensor, like: Tensor, index: Tensor | None = None, reads: Tensor | None = None
) -> Rows:
    """Rows `f(a) - f(b) + v_a - v_b > 0`, where comparisons of one event share each item's noise.

    The noise of an item in a single comparison is independent; that of an item in several goes into the shared root.

    Pairs of items, winner first, are `p x 2`, as are the points `index` (the items themselves if `None`) and quantities
    `reads`; `noise` is the variance of one item's.
    """
    p = pairs.shape[0]
    pairs, event = pairs.to(like.device), event.to(like.device)
    sign = torch.tensor([1.0, -1.0], dtype=like.dtype, device=like.device).expand(p, 2)
    key = torch.stack([event.unsqueeze(-1).expand_as(pairs), pairs], dim=-1).reshape(-1, 2)
    key, which, counts = key.unique(dim=0, return_inverse=True, return_counts=True)  # in the order of events
    which, shared = which.view(p, 2), counts > 1
    noise = noise.to(like)
    root, block = None, None
    if bool(shared.any()):
        before = shared.cumsum(0) - shared.long()  # the number of shared noises before each noise
        _, first = key[:, 0].unique_consecutive(return_inverse=True)
        start = torch.full_like(before, len(before)).scatter_reduce(0, first, before, "amin")
        place = before - start[first]  # of a noise among those of its event
        root = like.new_zeros(p, int(place[shared].max()) + 1)
        root = noise.sqrt() * root.scatter_add(-1, (place * shared)[which], sign * shared[which])
        block = event
    zeros = like.new_zeros(p)
    return Rows(
        index=pairs if index is None else index.to(like.device),
        coefficient=sign,
        bias=zeros,
        lower=zeros,
        upper=torch.full_like(zeros, torch.inf),
        noise=noise * (~shared)[which].to(like).sum(-1),
        noise_root=root,
        block=block,
        reads=None if reads is None else reads.to(like.device),
    )
