"""Active learning by BALD from a pool (unified framework, figures 9 and 10, table 2): ten labels, then ninety.

Points that have a label may be chosen again; the share of distinct points among the ninety is the pool's diversity.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from torch import Tensor

from benchmarks._race import Cell, Group, Race, Row, grid, mean_and_error
from benchmarks.experiments._models import unit_scaled
from benchmarks.experiments._optimisation import Fitter
from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import SkewBayesianActiveLearningByDisagreement
from botorch_skewgp.observations import Binary, Observation

SETS = ("iris", "wine", "breast cancer", "digits", "waveform")
METHODS = ("SkewGP", "EP", "Laplace", "random")
FIRST, STEPS, EVERY, MOST_POINTS, NUM_WAVES = 10, 90, 5, 250, 500


def waveforms(num: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Breiman's waveforms (Classification and Regression Trees, 1984): 21 inputs, three classes."""
    i = torch.arange(1.0, 22.0, dtype=torch.float64)
    bases = torch.stack([(6 - (i - centre).abs()).clamp(min=0) for centre in (11, 15, 7)])
    kind = torch.randint(3, (num,), generator=generator)
    first, second = torch.tensor([0, 0, 1])[kind], torch.tensor([1, 2, 2])[kind]
    share = torch.rand(num, 1, generator=generator, dtype=i.dtype)
    noise = torch.randn(num, 21, generator=generator, dtype=i.dtype)
    return share * bases[first] + (1 - share) * bases[second] + noise, kind


def _set(name: str, number: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Points and labels of the pool, and of what measures accuracy."""
    generator = torch.Generator().manual_seed(number)
    if name == "waveform":
        X, y = waveforms(NUM_WAVES, generator)
    else:
        load = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}[name]
        X, y = (torch.as_tensor(part) for part in load(return_X_y=True))
    order = torch.randperm(len(X), generator=generator)
    size = min(len(X) // 2, MOST_POINTS)
    pool, rest = order[:size], order[size : 2 * size]
    pool_X, rest_X = unit_scaled(X[pool], X[rest])
    return pool_X, y[pool] == 0, rest_X, y[rest] == 0


@torch.no_grad()
def _accuracy(model: SkewGP, X: Tensor, labels: Tensor) -> float:
    return float(((model.predictive(X).probs.flatten() > 0.5) == labels).double().mean())


def _run(set: str, method: str, seed: int, smoke: bool = False) -> dict[str, Cell]:
    pool, labels, test_X, test_labels = _set(set, seed)
    generator = torch.Generator().manual_seed(seed)
    asked = torch.randperm(len(pool), generator=generator).tolist()
    first_steps, steps = (4, 1) if smoke else (FIRST, STEPS)
    start = [*asked[:first_steps]]
    if len(labels[start].unique()) == 1:  # one of the other class, as no method can do without
        start[-1] = next(i for i in asked if labels[i] != labels[start[0]])
    others = [i for i in asked if i not in start]
    asked = start
    fitter = Fitter("SkewGP" if method == "random" else method, smoke)
    trace = []
    for step in range(steps + 1):
        seen: list[Observation] = [Binary(labels[asked])]
        model = fitter(pool[asked], seen)
        assert isinstance(model, SkewGP)
        if step % EVERY == 0 or smoke:
            trace.append(_accuracy(model, test_X, test_labels))
        if step == steps:
            break
        if method == "random":
            asked.append(others[step % len(others)])
            continue
        acquisition = SkewBayesianActiveLearningByDisagreement(model)
        with torch.no_grad():
            asked.append(int(torch.cat([acquisition(X.unsqueeze(-2)) for X in pool.split(50)]).argmax()))
    chosen = asked[first_steps:]
    shown = " ".join(f"{accuracy:.4f}" for accuracy in trace)
    return {"accuracy": shown, "diversity": len({*chosen}) / len(chosen)}


def _derived(row: Row) -> dict[str, Cell]:
    trace = [float(value) for value in row["accuracy"].split()]
    return {"last": trace[-1], "mean": sum(trace) / len(trace)}


def _columns(runs: Group) -> dict[str, Cell]:
    mine, theirs = runs.beside("mean", method="SkewGP")
    less, its_error = mean_and_error(theirs - mine)
    return {
        "trials": len(runs), "accuracy": runs.mean("last"), "error": runs.error("last"),
        "mean_accuracy": runs.mean("mean"), "less_than_skewgp": less, "its_error": its_error,
        "diversity": runs.mean("diversity"),
    }  # fmt: skip


RACES = (
    Race(
        "experiments/active_learning", grid(set=SETS), grid(method=METHODS), range(10), _run,
        ("accuracy", "diversity"), _columns,
        ["accuracy: after the last label; mean_accuracy: over the curve; less_than_skewgp: SkewGP's mean over the "
         "curve less the method's, paired; of all sets, errors are over runs"],
        derived=_derived, pooled="set", quick={"smoke": True},
    ),
)  # fmt: skip
