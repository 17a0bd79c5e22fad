"""The expected utility of the best option where duels are pending: one criterion for one pair and for several."""

from __future__ import annotations

import torch
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.models.model import Model
from botorch.utils.transforms import concatenate_pending_points, is_ensemble, t_batch_mode_transform
from torch import Tensor

SOFTNESS = 0.1  # of an answer's step, in standard deviations of the difference: gradients see who wins


class qExpectedUtilityAfterDuels(qExpectedUtilityOfBestOption):
    r"""`E[max_{x in D} E[f(x) | answers]]`, with `D` the points of a pair and of pending pairs, and answers to all.

    What the best of the points asked about is worth after the page is answered, without errors. Answers cut samples of
    the function into `2^m` parts; of one pair without others the two parts are those where each point is better, and
    the value is qEUBO ([Astudillo2023qeubo]_). Points that are all options of one choice would tell which of them is
    best, which duels do not.

    Args:
        model: A model of the utility.
        pairs: The pending pairs, `m x 2 x d`.
        X_pending: A point of the new pair, `1 x d`, if it is given.
    """

    pairs: Tensor

    def __init__(self, model: Model, pairs: Tensor, X_pending: Tensor | None = None) -> None:
        super().__init__(model, X_pending=X_pending)
        self.register_buffer("pairs", pairs)

    @concatenate_pending_points
    @t_batch_mode_transform()  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """The value of a pair, or of a first point of it that is not compared yet, `batch_shape x q x d`."""
        known = self.pairs.flatten(0, 1)
        points = torch.cat([known.expand(*X.shape[:-2], *known.shape), X], dim=-2)
        _, values = self._get_samples_and_objectives(points)  # S x batch_shape x (2m + q)
        if is_ensemble(self.model):  # a mixture: answers tell of its members too
            values = values.movedim(-2, 1).flatten(0, 1)
        pending = values.detach()[..., : len(known)].flatten(1, -2)[:, 0]  # the same for all candidates
        parts = pending.new_full((len(pending), 1), 1 / len(pending))
        for pair in pending.split(2, dim=-1) if len(known) else ():
            wins = _first_wins(pair).unsqueeze(-1)
            parts = torch.cat([parts * wins, parts * (1 - wins)], dim=-1)
        means = torch.einsum("sp,s...n->...pn", parts, values)
        if X.shape[-2] == 1:
            return means.amax(-1).sum(-1)
        wins = _first_wins(values[..., len(known) :])
        given_win = torch.einsum("sp,s...n->...pn", parts, values * wins.unsqueeze(-1))
        return given_win.amax(-1).sum(-1) + (means - given_win).amax(-1).sum(-1)


def _first_wins(values: Tensor) -> Tensor:
    """Which part of samples, `S x ... x 2`, has the first value above the second, with soft steps; `S x ...`."""
    difference = values[..., 0] - values[..., 1]
    step = SOFTNESS * difference.std(0)
    return torch.sigmoid(difference / step.clamp(min=torch.finfo(step.dtype).tiny))
