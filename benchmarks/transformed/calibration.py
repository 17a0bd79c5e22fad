"""How often quantiles hold for data from the prior: parameters, then data, then the cdf of one more outcome."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from scipy import stats
from torch import Tensor

from benchmarks._reporting import Table, say
from benchmarks._runs import Runs
from benchmarks.transformed.data import DOUBLE
from benchmarks.transformed.methods import WARPINGS
from botorch_skewgp.transformed import BayesianTransformedGP

N = 12  # training points
COVERAGES = (0.5, 0.9)


@torch.no_grad()
def level_of_a_draw(name: str, generator: torch.Generator, num_nodes: int) -> float:
    """The cdf that data from the prior give to one more outcome; uniform if predictions are what they say.

    Scale and mean of the process, whose priors are improper, are 1 and 0: predictions follow affine maps.
    """
    X = torch.rand(N + 1, 1, generator=generator, dtype=DOUBLE)
    prior = BayesianTransformedGP(X, X, warping=WARPINGS[name](), standardize=False)
    for module in (prior.covar_module, prior.likelihood, prior.warping):
        for name_of_prior, owner, law, _, setter in module.named_priors():
            constraint = owner.constraint_for_parameter_name(
                "raw_" + name_of_prior.split(".")[-1].removesuffix("_prior")
            )
            setter(owner, _draw(law, -math.inf if constraint is None else float(constraint.lower_bound), generator))
    K = prior.covar_module(X).to_dense() + prior.likelihood.noise * torch.eye(N + 1, dtype=DOUBLE)
    z = torch.linalg.cholesky(K) @ torch.randn(N + 1, generator=generator, dtype=DOUBLE)
    y = prior.warping.inverse(z).unsqueeze(-1)
    if not bool(y.isfinite().all()) or bool(y[:-1].amax() == y[:-1].amin()):
        return float("nan")
    fitted = BayesianTransformedGP(
        X[:-1], y[:-1], warping=WARPINGS[name](), standardize=False, num_nodes=num_nodes, least_effective=num_nodes / 4
    )
    return float(fitted.posterior(X[-1:], observation_noise=True).cdf(y[-1].item()))


def _draw(law: torch.distributions.Distribution, lower: float, generator: torch.Generator) -> Tensor:
    """A draw of a normal or log normal prior above what the parameter's constraint admits."""
    is_log = hasattr(law, "base_dist")
    normal = law.base_dist if is_log else law
    value = torch.tensor(-math.inf)
    while not bool(value > lower):
        value = (normal.loc + normal.scale * torch.randn((), generator=generator, dtype=DOUBLE)).double()
        value = value.exp() if is_log else value
    return value.reshape(1)


def calibration_table(notes: list[str], replicates: int, num_nodes: int, folder: Path | None) -> Table:
    """Ranks and coverages over data sets, for two warpings."""
    table = Table(
        "transformed_calibration",
        ("warping", "data_sets", "uniform_p", *(f"within_{int(100 * c)}" for c in COVERAGES)),
        notes=[*notes, f"{N} points of one input; p of a Kolmogorov-Smirnov test"],
    )
    runs = Runs("transformed_calibration_runs", ("warping", "seed"), ("level",), folder)
    for name in ("I", "SA"):
        levels = []
        for i in range(replicates):
            generator = torch.Generator().manual_seed(i)
            (level,) = runs.get((name, i), lambda name=name, g=generator: [level_of_a_draw(name, g, num_nodes)])
            levels.append(level)
            if (i + 1) % 20 == 0:
                say(f"calibration {name} {i + 1} of {replicates}")
        found = torch.tensor(levels, dtype=DOUBLE)
        found = found[~found.isnan()]
        p = float(stats.kstest(found.numpy(), "uniform").pvalue)
        within = {f"within_{int(100 * c)}": float(((found - 0.5).abs() < c / 2).double().mean()) for c in COVERAGES}
        table.add(warping=name, data_sets=len(found), uniform_p=p, **within)
    return table
