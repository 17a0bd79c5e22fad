"""Sparse grids beside quasi-Monte Carlo (Zhu et al., figure 3): the six-hump camel, 30 points, seven parameters.

All rules know the same mode. `QMC, adapted` and `Genz-Keister, t` are the package's; `Gauss-Legendre, box` is the
paper's grid and `QMC, box` what it compares with, both in a box of 2.5 of Laplace's standard deviations. Measured are
the log evidence beside that of the most adapted nodes, and, as in the paper, the squared error of medians.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

import torch
from botorch.exceptions.errors import BotorchError
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks._race import Cell, Group, Race, Row, grid
from benchmarks.transformed.predictions import DOUBLE, WARPINGS, camel
from botorch_skewgp.transformed import BayesianTransformedGP
from botorch_skewgp.transformed.nodes import Mode, Nodes, find_modes, smolyak_nodes, widened
from botorch_skewgp.transformed.sparse_grid import normal_rule, sparse_grid
from botorch_skewgp.truncated.univariate import gauss_rule

NUM_POINTS, NUM_TEST, BOX, SEEDS = 30, 50, 2.5, 3
VALUES = ("evaluations", "kernels", "condition", "evidence", "mse")
Rule = Callable[[BayesianTransformedGP, Mode, int, int], Nodes | None]  # from a level and a seed; none: the model's own


def _size(dim: int, level: int) -> int:
    """The evaluations that all rules of a level have: those of the nested grid."""
    return len(sparse_grid(dim, level)[0])


def _in_box(mode: Mode, grid: Tensor, weights: Tensor) -> Nodes:
    """Nodes in the box around a mode from those in the cube [-1, 1]^D, whose weights sum to one."""
    log_volume = (2 * BOX * mode.root.diagonal()).log().sum()
    return Nodes(mode.center + BOX * grid @ mode.root.mT, weights.abs().log() + log_volume, weights.sign())


def _legendre(model: BayesianTransformedGP, mode: Mode, level: int, seed: int) -> Nodes:
    dim = len(mode.center)  # of these grids, that with the nearest number of nodes
    grids = [sparse_grid(dim, own, lambda num: gauss_rule("legendre", num)) for own in range(2, level + 1)]
    return _in_box(mode, *min(grids, key=lambda grid: abs(math.log(len(grid[0]) / _size(dim, level)))))


def _laplace(model: BayesianTransformedGP, mode: Mode, level: int, seed: int) -> Nodes:
    grid, weights = sparse_grid(len(mode.center), level, normal_rule)
    log_density = -0.5 * (grid.square() + math.log(math.tau)).sum(-1) - mode.root.diagonal().log().sum()
    return Nodes(mode.center + grid @ mode.root.mT, weights.abs().log() - log_density, weights.sign())


def _student_t(model: BayesianTransformedGP, mode: Mode, level: int, seed: int) -> Nodes:
    return smolyak_nodes([widened(model.log_posterior, mode)], level)._replace(coarser=())


def _uniform(model: BayesianTransformedGP, mode: Mode, level: int, seed: int) -> Nodes:
    dim = len(mode.center)
    grid = 2 * SobolEngine(dim, scramble=True, seed=seed).draw(_size(dim, level), dtype=DOUBLE) - 1
    return _in_box(mode, grid, torch.full((len(grid),), 1 / len(grid), dtype=DOUBLE))


RULES: dict[str, Rule] = {
    "Gauss-Legendre, box": _legendre,
    "Genz-Keister, Laplace": _laplace,
    "Genz-Keister, t": _student_t,
    "QMC, box": _uniform,
    "QMC, adapted": lambda model, mode, level, seed: None,
}


@torch.no_grad()
def _run(rule: str, level: int, seed: int) -> list[dict[str, Cell]]:
    if seed and not rule.startswith("QMC"):
        return []
    data = camel(NUM_POINTS, NUM_TEST)

    def make(**settings: float) -> BayesianTransformedGP:
        return BayesianTransformedGP(data.X, data.Y, warping=WARPINGS["L-SA"](), **settings)  # type: ignore[arg-type]

    model = make()
    start = model.coordinates()
    along = torch.tensor(["lengthscale" in name for name in model.parameter_names()]).to(start)
    mode = find_modes(model.log_posterior, start, 4, 0, along)[0]
    nodes = RULES[rule](model, mode, level, seed)
    if nodes is None:
        model = make(num_nodes=_size(len(start), level), least_effective=0.0, seed=seed)
    else:
        model.use_nodes(nodes)
    return [_score(model, data.test_X.unsqueeze(-2), data.test_y)]


def _columns(runs: Group) -> dict[str, Cell]:
    refused = int(runs.values("mse").isnan().sum())
    return {"runs": len(runs), "refused": refused, **{name: float(runs.values(name).nanmean()) for name in VALUES}}


def _less_than_last(rows: Sequence[Row]) -> list[Row]:
    """Evidences less that of the most adapted nodes."""
    most = max((int(row["level"]) for row in rows), default=0)
    last = [float(row["evidence"]) for row in rows if (row["rule"], row["level"]) == ("QMC, adapted", str(most))]
    center = sum(last) / max(len(last), 1)
    return [{**row, "evidence": str(float(row["evidence"] or "nan") - center)} for row in rows]


def _score(model: BayesianTransformedGP, test_X: Tensor, test_y: Tensor) -> dict[str, Cell]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            median = model.posterior(test_X).quantile(0.5).flatten()
        except BotorchError:
            return dict.fromkeys(VALUES)
    given = model._nodes  # noqa: SLF001
    assert given is not None
    full = model._data.weigh(given.u)  # noqa: SLF001
    weight = given.sign * torch.softmax(full.log_weight + given.log_weight, 0)
    return {
        "evaluations": len(given.u), "kernels": len(model.weighted_nodes.of_kernels),
        "condition": float(1 / weight.sum()), "evidence": model.log_evidence,
        "mse": float((median - test_y).square().mean()),
    }  # fmt: skip


RACES = (
    Race(
        "transformed_figure_3", grid(level=range(2, 6)), grid(rule=RULES), range(SEEDS), _run, VALUES, _columns,
        [f"camel, {NUM_POINTS} points, {NUM_TEST} test points, affine and sinh-arcsinh; means over seeds",
         "kernels: of the nodes kept at a tolerance of 1 %; mse: of medians against the function, as in the paper",
         "condition: of all weights, the sum of sizes over the sum",
         "evidence: in nats, less that of QMC, adapted, with the most nodes; of the runs up to a constant"],
        told=_less_than_last,
    ),
)  # fmt: skip
