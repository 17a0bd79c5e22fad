"""Several judges, simulated: are panels that are drawn from the prior recovered?

Hyperparameters are known or fitted. Where the true difference of two new items' utilities ranks among its draws, for
what all share, for a judge, and for his taste in the first input; and the error of the predicted share of the
population that would choose one over the other.
"""

from __future__ import annotations

import torch
from scipy.stats import chisquare

from benchmarks._race import Cell, Group, Names, Race, grid
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.models import default_covar_module
from botorch_skewgp.models.defaults import default_judge_covar_module
from botorch_skewgp.observations import Preference

NUM_ITEMS, DIM, EACH = 24, 2, 16
NUM_RANKED, NUM_BINS = 99, 10  # draws that a true value is ranked among, and bins of its ranks
SHARE = "share of the population"


def _run(hyperparameters: str, value: str, seed: int) -> list[Names]:
    """Ranks from 0 to 1 of true differences, and the error of a share, for one panel."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(NUM_ITEMS + 3, DIM, dtype=torch.double, generator=generator)
    X[-1] = X[-2] + torch.tensor([0.2, 0.0])  # a step along the first input
    judge = torch.arange(5).repeat_interleave(EACH)
    shown = torch.stack([torch.randperm(NUM_ITEMS, generator=generator)[:2] for _ in judge])
    kernels = [make(DIM, [Preference(shown)]) for make in (default_covar_module, default_judge_covar_module)]
    jitter = 1e-8 * torch.eye(len(X), dtype=torch.double)
    with torch.no_grad():
        K, own = (kernel(X).to_dense() + jitter for kernel in kernels)
        normal = torch.randn(6, len(X), 1, dtype=torch.double, generator=generator)
        shared = (torch.linalg.cholesky(K) @ normal[0]).squeeze(-1)
        utility = shared + (torch.linalg.cholesky(own) @ normal[1:]).squeeze(-1)
        said = utility[judge].gather(-1, shown) + torch.randn(len(judge), 2, dtype=torch.double, generator=generator)
        pairs = shown.gather(-1, said.argsort(-1, descending=True))
        between = own[-3, -3] + own[-2, -2] - 2 * own[-3, -2]
    model = SkewGP(
        X[:NUM_ITEMS], Preference(pairs, judge=judge), covar_module=kernels[0], judge_covar_module=kernels[1]
    )
    if hyperparameters == "fitted":
        fit_skew_gp(model)
    rows: list[Names] = []
    with torch.no_grad():
        for name, who, values, first, second in (
            (value, None, shared, -3, -2),
            ("a judge's utility", 0, utility[0], -3, -2),
            ("a judge's taste", 0, utility[0], -1, -2),
        ):
            draws = model.posterior(X[[first, second]], judge=who).rsample(torch.Size([NUM_RANKED])).squeeze(-1)
            below = (draws[:, 0] - draws[:, 1] < values[first] - values[second]).double()
            rank = (below.sum() + torch.rand(1, generator=generator)) / (NUM_RANKED + 1)
            rows.append({"value": name, "rank": float(rank)})
        share = torch.special.ndtr((shared[-3] - shared[-2]) / (2 + between).sqrt())
        error = float(model.predictive(X[[-3, -2]], judge="new").probs - share)
    return [*rows, {"value": SHARE, "error": error}]


def _columns(runs: Group) -> dict[str, Cell]:
    if runs.names["value"] == SHARE:
        return {"panels": len(runs), "error": runs.mean("error"), "standard_error": runs.error("error")}
    rank = runs.values("rank")
    counts = torch.bincount((rank * NUM_BINS).long().clamp(max=NUM_BINS - 1), minlength=NUM_BINS)
    cover = {f"cover_{level}": float(((rank - 0.5).abs() <= level / 200).double().mean()) for level in (50, 90)}
    p_value = float(chisquare(counts.numpy()).pvalue)
    return {"panels": len(runs), "mean_rank": float(rank.mean()), **cover, "uniform_p": p_value}


RACES = (
    Race("judges_calibration", grid(hyperparameters=("known", "fitted")), grid(value=["what all share"]), range(100),
         _run, ("rank", "error"), _columns,
         [f"ranks from 0 to 1 among {NUM_RANKED} draws; uniform_p by {NUM_BINS} bins; errors of shares"]),
)  # fmt: skip
