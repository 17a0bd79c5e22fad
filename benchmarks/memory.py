"""Memory: what a model keeps, and the peaks of its fit and of its draws.

A fit and the draws after it each have a process of their own, in which a model of a few rows has gone through both
before, so that libraries are loaded and compiled. The peak is that of the process's resident memory above what it had
just before; it holds what the allocator does not give back, too. What is kept are the arrays that can be reached from
the model, its posterior having been asked for once. Data are those of `steps`: labels of points with six inputs, and
duels of new points; the draws are the default ones. Megabytes are 1e6 bytes.
"""

from __future__ import annotations

import time
import types
import warnings
from pathlib import Path
from typing import Any

import torch
from botorch.fit import fit_gpytorch_mll
from torch import Tensor

from benchmarks._problems import duel_data
from benchmarks._process import apart
from benchmarks._race import Cell, Race
from benchmarks.steps import DIMENSION, NOISE
from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Preference

CASES = [*({"data": "labels", "size": size} for size in (500, 1000, 2000)), {"data": "duels", "size": 1000}]
MEASURES = ("kept_mb", "fit_peak_mb", "draws_peak_mb", "draws_over_kept", "fit_s", "draws_s", "thinning")
SMALL = 10  # rows of the model that loads and compiles everything
MEGABYTE = 1e6
NO_PARTS = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, str, bytes, int, float)


def _run(data: str, size: int, seed: int) -> dict[str, Cell]:
    fit = apart(measure, data, size, None)
    draws = apart(measure, data, size, fit["parameters"])
    return {
        "fit_peak_mb": fit["peak_mb"], "fit_s": fit["seconds"], "kept_mb": draws["kept_mb"],
        "draws_peak_mb": draws["peak_mb"], "draws_s": draws["seconds"], "thinning": draws["thinning"],
        "draws_over_kept": draws["peak_mb"] / draws["kept_mb"],
    }  # fmt: skip


def measure(data: str, size: int, parameters: dict[str, Any] | None) -> dict[str, Any]:
    """A fit without parameters, the draws with them."""
    warnings.simplefilter("ignore")
    small, X = _model(data, SMALL)
    _fit(small)
    _ask(small, X)
    model, X = _model(data, size)
    if parameters:
        like = model.state_dict()
        model.load_state_dict({name: torch.tensor(value).to(like[name]) for name, value in parameters.items()})
    before, began = _resident("VmRSS"), time.process_time()
    if parameters is None:
        _fit(model)
    else:
        _ask(model, X)
    ended, peak = time.process_time(), _resident("VmHWM")
    found = {"seconds": ended - began, "peak_mb": (peak - before) / MEGABYTE}
    if parameters is None:
        return found | {"parameters": {name: value.tolist() for name, value in model.state_dict().items()}}
    return found | {"kept_mb": sum(_storages(model).values()) / MEGABYTE, "thinning": model.draws.thinning}


def _model(data: str, size: int) -> tuple[SkewGP, Tensor]:
    if data == "labels":
        X = torch.rand(size, DIMENSION, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        return SkewGP(X, Binary(torch.sin(4 * X).sum(-1) > 2)), X
    duels = duel_data(size, NOISE, DIMENSION)
    return SkewGP(duels.X, Preference(duels.pairs)), duels.X


def _fit(model: SkewGP) -> None:
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))


def _ask(model: SkewGP, X: Tensor) -> None:
    with torch.no_grad():
        model.posterior(X[:1])


def _resident(name: str) -> int:
    """Resident memory of this process in bytes: what Linux calls VmRSS, now, or VmHWM, at its peak."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return 1024 * int(line.split()[1])


def _storages(model: SkewGP) -> dict[int, int]:
    """The addresses and bytes of all storages of tensors that can be reached from a model."""
    found: dict[int, int] = {}
    seen: set[int] = set()
    ahead: list[Any] = [model]
    while ahead:
        entry = ahead.pop()
        if id(entry) in seen or isinstance(entry, NO_PARTS):
            continue
        seen.add(id(entry))
        if isinstance(entry, Tensor):
            storage = entry.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
            ahead.append(entry.grad)
        if isinstance(entry, dict):
            ahead += entry.values()
        elif isinstance(entry, list | tuple | set | frozenset):
            ahead += entry
        ahead += getattr(entry, "__dict__", {}).values()
    return found


RACES = (Race("memory", CASES, [{}], range(1), _run, MEASURES),)
