"""Several judges, simulated: one at random, and calibration.

- *random*: five judges, of whom one answers at random. How much utility the recommended item lacks, of what the others
  share: with judges named and reliabilities learned, with rates of slips beside them, with judges named alone, with
  that judge left out, and with nobody named.
- *calibration*: panels that are drawn from the prior, with hyperparameters that are known or fitted. Where the true
  difference of two new items' utilities ranks among its draws, for what all share, for a judge, and for his taste in
  the first input; and the error of the predicted share of the population that would choose one over the other.
"""

from __future__ import annotations

import argparse
import warnings
from typing import NamedTuple

import torch
from scipy.stats import chisquare
from torch import Tensor

from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.models import default_covar_module
from botorch_skewgp.models.defaults import default_judge_covar_module
from botorch_skewgp.observations import Preference

PARTS = ("random", "calibration")
NUM_ITEMS, DIM, EACH = 24, 2, 16
NUM_RANKED, NUM_BINS = 99, 10  # draws that a true value is ranked among, and bins of its ranks


class Panel(NamedTuple):
    """Items and the utilities of judges, in units of the noise of an answer."""

    X: Tensor
    shared: Tensor
    own: Tensor
    generator: torch.Generator

    @classmethod
    def simulate(cls, seed: int, num_judges: int) -> Panel:
        """A shared bump and tastes of people's own, which make a tenth of the variance."""
        generator = torch.Generator().manual_seed(seed)
        X = torch.rand(NUM_ITEMS, DIM, dtype=torch.double, generator=generator)
        centre = 0.2 + 0.6 * torch.rand(DIM, dtype=torch.double, generator=generator)
        shared = 12 * torch.exp(-(X - centre).square().sum(-1) / 0.2)
        tastes = 4 * torch.randn(num_judges, DIM, dtype=torch.double, generator=generator)
        return cls(X, shared, tastes @ (X - 0.5).mT, generator)

    def answer(self, judge: int, pair: Tensor) -> Tensor:
        """A pair with the winner first."""
        noise = torch.randn(2, dtype=torch.double, generator=self.generator)
        said = (self.shared + self.own[judge])[pair] + noise
        return pair[said.argsort(descending=True)]

    def pair(self) -> Tensor:
        """Two items at random."""
        return torch.randperm(NUM_ITEMS, generator=self.generator)[:2]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--panels", type=int, default=100, help="of calibration")


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder, seeds = prepare(options), range(2 if options.quick else options.seeds)
    notes = [environment(), f"load average at the start {load_average()}"]
    tables = []
    if "random" in options.parts:
        tables.append(at_random(list(seeds), notes))
    if "calibration" in options.parts:
        tables.append(calibration(range(4 if options.quick else options.panels), notes))
    publish(tables, folder)


def _fit(model: SkewGP) -> SkewGP:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_skew_gp(model)
    return model


@torch.no_grad()
def _lack(model: SkewGP, X: Tensor, utility: Tensor, judge: int | None = None) -> float:
    """How much less utility the recommended item has than the best one."""
    chosen = model.posterior(X, judge=judge).mean.squeeze(-1).argmax()
    return float(utility.max() - utility[chosen])


def at_random(seeds: list[int], notes: list[str]) -> Table:
    """Decisions beside a judge who answers at random."""
    columns = ("seed", "reliability_and_slips", "reliability", "named", "left_out", "nobody_named")
    table = Table("judges_random", columns, notes=notes)
    for seed in seeds:
        panel = Panel.simulate(seed, 5)
        judge = torch.arange(5).repeat_interleave(EACH)
        pairs = [panel.pair() for _ in judge]
        pairs = torch.stack(
            [pair if j == 4 else panel.answer(j, pair) for j, pair in zip(judge.tolist(), pairs, strict=True)]
        )
        honest = judge < 4
        answers = {
            "reliability_and_slips": Preference(pairs, judge=judge),
            "reliability": Preference(pairs, judge=judge),
            "named": Preference(pairs, judge=judge),
            "left_out": Preference(pairs[honest], judge=judge[honest]),
            "nobody_named": Preference(pairs),
        }
        row = {
            name: _lack(_fit(_model(panel.X, entry, "reliability" in name, "slips" in name)), panel.X, panel.shared)
            for name, entry in answers.items()
        }
        table.add(seed=seed, **row)
        say(f"seed {seed}: {row}")
    return table


def _model(X: Tensor, observations: Preference, reliability: bool = False, slips: bool = False) -> SkewGP:
    likelihood = PreferenceLikelihood(slip=torch.full((5,), 0.05), learn_slip=True) if slips else None
    return SkewGP(X, observations, likelihood=likelihood, approximation="ep", learn_judge_reliability=reliability)


def calibration(seeds: range, notes: list[str]) -> Table:
    """Ranks of true values among draws, and shares of a population."""
    ranked = ("mean_rank", "cover_50", "cover_90", "uniform_p")
    table = Table(
        "judges_calibration",
        ("hyperparameters", "value", "panels", *ranked, "error", "standard_error"),
        notes=[*notes, f"ranks from 0 to 1 among {NUM_RANKED} draws; uniform_p by {NUM_BINS} bins; errors of shares"],
    )
    for hyperparameters in ("known", "fitted"):
        ranks: dict[str, list[float]] = {}
        errors = []
        for seed in seeds:
            found, error = _ranks(seed, hyperparameters == "fitted")
            errors.append(error)
            for name, rank in found.items():
                ranks.setdefault(name, []).append(rank)
        for name, values in ranks.items():
            rank = torch.tensor(values)
            counts = torch.bincount((rank * NUM_BINS).long().clamp(max=NUM_BINS - 1), minlength=NUM_BINS)
            table.add(
                hyperparameters=hyperparameters, value=name, panels=len(rank), mean_rank=float(rank.mean()),
                cover_50=float(((rank - 0.5).abs() <= 0.25).double().mean()),
                cover_90=float(((rank - 0.5).abs() <= 0.45).double().mean()),
                uniform_p=float(chisquare(counts.numpy()).pvalue),
            )  # fmt: skip
        error = torch.tensor(errors)
        table.add(
            hyperparameters=hyperparameters, value="share of the population", panels=len(error),
            error=float(error.mean()), standard_error=float(error.std() / len(error) ** 0.5),
        )  # fmt: skip
        say(f"{hyperparameters}: {table.rows[-4:]}")
    return table


def _ranks(seed: int, fitted: bool) -> tuple[dict[str, float], float]:
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
    if fitted:
        _fit(model)
    found = {}
    with torch.no_grad():
        for name, who, values, first, second in (
            ("what all share", None, shared, -3, -2),
            ("a judge's utility", 0, utility[0], -3, -2),
            ("a judge's taste", 0, utility[0], -1, -2),
        ):
            draws = model.posterior(X[[first, second]], judge=who).rsample(torch.Size([NUM_RANKED])).squeeze(-1)
            below = (draws[:, 0] - draws[:, 1] < values[first] - values[second]).double()
            found[name] = float((below.sum() + torch.rand(1, generator=generator)) / (NUM_RANKED + 1))
        share = torch.special.ndtr((shared[-3] - shared[-2]) / (2 + between).sqrt())
        error = float(model.predictive(X[[-3, -2]], judge="new").probs - share)
    return found, error
