"""What bounds of quantiles save, and what leaving one out costs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from benchmarks._reporting import Cell, Table, say
from benchmarks.transformed.data import DOUBLE, levy
from botorch_skewgp.transformed import BayesianTransformedGP
from botorch_skewgp.transformed.marginals import TransformedTMarginals
from botorch_skewgp.transformed.nodes import Nodes


class _Counted(TransformedTMarginals):
    """Counts how many numbers the cdf is evaluated at, and brackets quantiles in one of several ways."""

    kind, count = "both", 0

    def bracket(self, level: Tensor) -> tuple[Tensor, Tensor]:
        if self.kind == "none":
            reach = torch.full_like(level, 1e3)
            return -reach, reach
        return super().bracket(level)

    def first_guess(self, level: Tensor) -> Tensor:
        if self.kind == "hull and first guess":
            return super().first_guess(level)
        low, high = self.bracket(level)
        return 0.5 * (low + high)

    def component_cdf(self, value: Tensor) -> Tensor:
        type(self).count += value.numel()
        return super().component_cdf(value)

    def component_survival(self, value: Tensor) -> Tensor:
        type(self).count += value.numel()
        return super().component_survival(value)


def bounds(notes: list[str], trials: int = 10) -> Table:
    kinds = ("none", "hull", "hull and first guess")
    table = Table(
        "transformed_bounds",
        ("bounds", "evaluations_per_quantile", "seconds"),
        notes=[*notes, f"levels 0.05, 0.5 and 0.95 at 100 points, n = 200 of Levy, {trials} trials"],
    )
    counts, seconds = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0.0)
    for seed in range(trials):
        data = levy(200, seed)
        model = BayesianTransformedGP(data.X, data.Y, num_nodes=32)
        with torch.no_grad():
            law = model.posterior(data.test_X.unsqueeze(-2)).marginals
        for kind in kinds:
            counted = _Counted(*law.parameters, law.probabilities, law.df, law.warping)
            counted.kind, _Counted.count = kind, 0
            start = time.perf_counter()
            for p in (0.05, 0.5, 0.95):
                counted.quantile(torch.full(law.batch_shape, p, dtype=DOUBLE))
            seconds[kind] += time.perf_counter() - start
            counts[kind] += _Counted.count
        say(f"bounds {seed + 1} of {trials}")
    for kind in kinds:
        table.add(bounds=kind, evaluations_per_quantile=counts[kind] / (300 * trials), seconds=seconds[kind] / trials)
    return table


SIZES = (500, 1000, 2000, 4000)  # below 2,000 calls and copies of matrices take longer than factorisations


def leave_one_out(notes: list[str]) -> Table:
    table = Table(
        "transformed_leave_one_out",
        ("n", "closed_form_s", "refits_s", "slope_closed_form", "slope_refits"),
        notes=[
            *notes,
            "processor time; of the n refits one was timed and multiplied by n; the least of 3, of 2 from 4,000 on",
            "slopes: from the size before, in logarithms; powers of 3 and 4 show where factorisations dominate",
        ],
    )
    for n in SIZES:
        data, repeats = levy(n, 0), 3 if n < 4000 else 2
        model = BayesianTransformedGP(data.X, data.Y, quadrature="mode")
        u = model.coordinates().unsqueeze(0)
        model.use_nodes(Nodes.single(u.squeeze(0)))
        model.log_evidence  # noqa: B018  made once, outside of the clock
        closed = _clock(lambda model=model: model.leave_one_out(), repeats)
        again = _clock(lambda model=model, u=u: _weigh(model, u), repeats)
        one = _clock(
            lambda data=data, u=u, n=n: _weigh(BayesianTransformedGP(data.X[: n - 1], data.Y[: n - 1]), u), repeats
        )
        times = {"closed_form_s": closed + again, "refits_s": n * one}
        before = table.rows[-1] if table.rows else None
        slopes = {f"slope_{column.removesuffix('_s')}": _slope(before, column, n, times[column]) for column in times}
        table.add(n=n, **times, **slopes)
        say(f"leave-one-out {n}")
    return table


def _slope(before: Mapping[str, Cell] | None, column: str, n: int, seconds: float) -> float:
    """The power of `n` with which a time grew since the size before."""
    if before is None:
        return math.nan
    return math.log(seconds / before[column]) / math.log(n / before["n"])  # type: ignore[operator]


@torch.no_grad()
def _weigh(model: BayesianTransformedGP, u: Tensor) -> None:
    model.log_posterior(u)


def _clock(run: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)
