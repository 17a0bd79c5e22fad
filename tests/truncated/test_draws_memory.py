"""Draws hold no more than they return, and little more while they are made."""

import warnings
from typing import Any

import pytest
import torch
from row_cases import make, zeros
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from botorch_skewgp.exceptions import PoorDrawsWarning
from botorch_skewgp.truncated.draws import DrawSettings, draw
from botorch_skewgp.truncated.priors import LowRankPrior


class LiveBytes(TorchDispatchMode):
    """The largest number of bytes of storages that were there after an operation and came from one."""

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        self._live: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self._live = {key: entry for key, entry in self._live.items() if not entry[0].expired()}
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                reference = StorageWeakRef(leaf.untyped_storage())
                self._live.setdefault(reference.cdata, (reference, leaf.untyped_storage().nbytes()))
        self.peak = max(self.peak, sum(size for _, size in self._live.values()))
        return result


def test_what_is_thinned_out_is_not_held() -> None:
    x = torch.linspace(0, 1, 40, dtype=torch.float64).unsqueeze(-1)
    distribution = make(zeros(40), torch.exp(-8 * (x - x.mT).square()), noise=1.0)
    peaks = []
    for thinning in (1, 16):
        settings = DrawSettings(num_draws=64, min_effective_size=1e6, max_thinning=thinning, sampler="reflective")
        with LiveBytes() as live, warnings.catch_warnings():
            warnings.simplefilter("ignore", PoorDrawsWarning)
            draws = draw(distribution, settings)
        assert draws.thinning == thinning
        peaks.append(live.peak)
    assert peaks[1] < 2 * peaks[0]


@pytest.mark.parametrize("sampler", ["reflective", "hamiltonian"])
def test_draws_hold_nothing_else(sampler: Any) -> None:
    root = torch.randn(60, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    draws = draw(
        make(zeros(60), LowRankPrior(root), noise=1.0),
        DrawSettings(num_draws=64, sampler=sampler, min_effective_size=1),
    )
    assert draws.rows.untyped_storage().nbytes() == draws.rows.numel() * draws.rows.element_size()
