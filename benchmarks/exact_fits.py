"""Fits of the exact model beside an earlier commit's: seconds in turns, and whether both reach the same optimum.

The earlier commit is checked out from git into a temporary folder. Every fit runs in a process of its own, the two
commits taking turns; seconds are of its CPU, the median over the repeats. Labels are those of `benchmarks scale`, with
an ARD squared exponential kernel without priors from the same start and the noise fixed; duels are between neighbours
in a list of random points. Both optima are compared by the present objective, in nats an observation.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._reporting import (
    Table,
    add_common_arguments,
    environment,
    load_average,
    prepare,
    publish,
    say,
)

COMMIT = "0001596"  # the exact model before sweeps were accelerated
RESULT = "RESULT "
FIT = """
import json, sys, time, warnings
import torch
from botorch.fit import fit_gpytorch_mll
from gpytorch.kernels import RBFKernel, ScaleKernel
from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Preference

warnings.simplefilter("ignore")
torch.set_num_threads(1)
kind, n, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
generator = torch.Generator().manual_seed(seed)
X = torch.rand(n, 3, generator=generator, dtype=torch.float64)
f = 2 * torch.sin(X @ torch.tensor([9.0, 6.0, 3.0], dtype=torch.float64))
noise = torch.randn(n, generator=generator, dtype=torch.float64)
if kind == "labels":
    data = Binary(f + noise > 0)
else:
    pairs = torch.stack([torch.arange(n - 1), torch.arange(1, n)], dim=-1)
    value = f + 0.3 * noise
    wins = value[pairs[:, 0]] > value[pairs[:, 1]]
    data = Preference(torch.where(wins.unsqueeze(-1), pairs, pairs.flip(-1)))


def build(X, data):
    kernel = ScaleKernel(RBFKernel(ard_num_dims=3)).double()
    kernel.base_kernel.lengthscale = 0.4
    model = SkewGP(X, data, covar_module=kernel)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith("covar_module"))
    return model, SkewGPMarginalLogLikelihood(model.likelihood, model)


if len(sys.argv) > 4:  # the objective at a given optimum
    model, mll = build(X, data)
    with torch.no_grad():
        for parameter, value in zip(model.covar_module.parameters(), json.loads(sys.argv[4])):
            parameter.copy_(torch.tensor(value, dtype=torch.float64).reshape(parameter.shape))
        model.train()
        mll.train()
        value = float(mll(model(*model.train_inputs), model.train_targets))
    print("RESULT " + json.dumps(value / n))
else:
    fit_gpytorch_mll(build(X[:20], Binary(f[:20] > 0))[1])  # imports and compiles
    model, mll = build(X, data)
    began = time.process_time()
    fit_gpytorch_mll(mll)
    seconds = time.process_time() - began
    print("RESULT " + json.dumps([seconds, [p.flatten().tolist() for p in model.covar_module.parameters()]]))
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--against", default=COMMIT, help="the earlier commit")
    parser.add_argument("--sizes", type=int, nargs="*", help="numbers of observations; 300, 600 and 1,000 if not given")
    parser.add_argument("--repeats", type=int, default=3, help="fits of which the median counts")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    sizes = options.sizes or ([100] if options.quick else [300, 600, 1000])
    repeats = 1 if options.quick else options.repeats
    root = Path(__file__).parent.parent
    columns = ("observations", "size", "earlier_s", "now_s", "factor", "objective_gained")
    notes = [environment(), f"earlier commit {options.against}", f"load average at the start {load_average()}"]
    table = Table("exact_fits", columns, notes=notes)
    with tempfile.TemporaryDirectory() as temporary:
        earlier = Path(temporary) / "earlier"
        _git(root, "worktree", "add", "--detach", str(earlier), options.against)
        try:
            for kind in ("labels", "duels"):
                for n in sizes:
                    runs = [(_run(earlier, kind, n), _run(root, kind, n)) for _ in range(repeats)]
                    before, after = (median(run[side][0] for run in runs) for side in range(2))
                    old, new = (_run(root, kind, n, runs[0][side][1]) for side in range(2))
                    table.add(
                        observations=kind, size=n, earlier_s=before, now_s=after, factor=before / after,
                        objective_gained=new - old,
                    )  # fmt: skip
                    say(f"{n} {kind}: {before:.2f} s, {after:.2f} s")
        finally:
            _git(root, "worktree", "remove", "--force", str(earlier))
    table.notes.append(f"load average at the end {load_average()}")
    publish([table], folder)


def _git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True)


def _run(checkout: Path, kind: str, n: int, optimum: list[list[float]] | None = None) -> Any:
    """A fit by the code in a checkout, its seconds and optimum; or the objective at an optimum that is given."""
    given = [] if optimum is None else [json.dumps(optimum)]
    command = [sys.executable, "-c", FIT, kind, str(n), "0", *given]
    done = subprocess.run(
        command, cwd=checkout, env={**os.environ, "PYTHONPATH": ""}, capture_output=True, text=True, check=True
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith(RESULT))
    return json.loads(line.removeprefix(RESULT))
