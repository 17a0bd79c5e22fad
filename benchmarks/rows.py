"""Many rows over few points: what evidence and posterior cost as the number of duels or of items grows.

For `m` duels between `n` items all work should be linear in `m` once `m` is larger than `n`: nothing of size `m x m` is
built. The exponents are slopes of least squares lines through the logarithms.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings

import torch

from benchmarks._problems import duel_data
from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Preference

NOISE = 0.3  # standard deviation of one value of a duel
DIMENSION = 4
PARTS = ("evidence_s", "draws_s", "posterior_s")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--items", type=int, default=100, help="items while the number of duels grows")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    table = Table(
        "rows",
        ("grows", "items", "duels", *PARTS, "total_s", "thinning", "least_ess", "warnings"),
        notes=[environment(), f"load average at the start {load_average()}"],
    )
    duels = [500, 1000, 2000] if options.quick else [500, 1000, 2000, 4000, 8000]
    items = [50, 100] if options.quick else [50, 100, 200, 400]
    _measure(options.items, duels[0])  # warm-up
    for m in duels:
        table.add(grows="duels", **_measure(options.items, m))
        say(f"{m} duels between {options.items} items: {table.rows[-1]['total_s']:.2f} s")
    for n in items:
        table.add(grows="items", **_measure(n, duels[2]))
        say(f"{duels[2]} duels between {n} items: {table.rows[-1]['total_s']:.2f} s")
    for grows in ("duels", "items"):
        rows = [row for row in table.rows if row["grows"] == grows]
        sizes = [float(row[grows]) for row in rows]  # type: ignore[arg-type]
        for part in (*PARTS, "total_s"):
            slope = _exponent(sizes, [float(row[part]) for row in rows])  # type: ignore[arg-type]
            table.notes.append(f"{part} grows with {grows} to the power {slope:.2f}")
    table.notes.append(f"load average at the end {load_average()}")
    publish([table], folder)


def _measure(items: int, m: int) -> dict[str, float | int]:
    """Seconds for the EP evidence, the draws, and the posterior's mean and variance at a hundred points."""
    data = duel_data(m, NOISE, DIMENSION, items=items)
    model = SkewGP(data.X, Preference(data.pairs))
    model.covar_module.base_kernel.lengthscale = 0.5
    model.covar_module.outputscale = 1 / NOISE**2
    model.eval()
    test_X = torch.rand(100, DIMENSION, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    times = [time.perf_counter()]
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        model.log_marginal_likelihood("ep")
        times.append(time.perf_counter())
        draws = model.draws
        times.append(time.perf_counter())
        posterior = model.posterior(test_X)
        assert bool(posterior.mean.isfinite().all() and posterior.variance.isfinite().all())
        times.append(time.perf_counter())
    spent = [end - start for start, end in itertools.pairwise(times)]
    return {
        "items": items,
        "duels": m,
        **dict(zip(PARTS, spent, strict=True)),
        "total_s": sum(spent),
        "thinning": draws.thinning,
        "least_ess": float(draws.effective_size.min()),
        "warnings": " ".join(sorted({entry.category.__name__ for entry in caught})),
    }


def _exponent(sizes: list[float], seconds: list[float]) -> float:
    x, y = (torch.tensor(values, dtype=torch.float64).log() for values in (sizes, seconds))
    x = x - x.mean()
    return float((x * y).sum() / x.square().sum())
