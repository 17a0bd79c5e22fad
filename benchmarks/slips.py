"""What a rate of slips is worth: calibration of simulated duels, exact and by expectation propagation; a crowd's ranks.

`--parts duels`: data sets from the model: a function of the prior on 12 points of a line, `--duels` duels of random
pairs, of whose answers a share is drawn at random. Hyperparameters are the true ones. Models: exact and by expectation
propagation with the true rate of slips, and exact without. Reported are the log loss of 200 new attentive duels, the
coverage of 90 % intervals of differences of utilities, the error of their means in prior standard deviations, the log
loss of which answers are slips, and the paired difference of each to the exact model.

`--parts votes`: ten members vote 30 times each between 12 items; two members answer at random. Utilities are
of standard deviation 2, in units of an item's noise. Models: a rate of slips of each member learned, one rate learned,
a reliability of each member learned (the default of `item_model`), none of these. Reported is the coverage of 90 %
intervals of ranks and of utilities less their mean, and the correlation of utilities.

`--parts attentive`: what a learned rate costs where there are no slips. A judge answers 30 duels of random pairs among
20 Sobol points, without noise or with noise of a fifth of the function's standard deviation at each point. Models by
expectation propagation, fitted, with a learned rate and without slips. Reported are how far the point of the highest
posterior mean is behind the best of the 20, in standard deviations of the function, the share of 2000 new pairs of the
domain that posterior means put in the wrong order, the log loss of these, and the paired differences.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from itertools import product

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.test_functions import Branin, Hartmann
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from torch import Tensor

from benchmarks._reporting import Table, add_common_arguments, environment, load_average, prepare, publish, say
from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.items.model import default_item_covar_module, item_points
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference

NUM_POINTS, NUM_NEW, LEVEL = 12, 200, 0.9
MODELS = ("exact", "EP", "exact, no slips")
ITEMS, MEMBERS, RANDOM, VOTES, SPREAD = 12, 10, 2, 30, 2.0
PARTS = ("duels", "votes", "attentive")
MEASURES = ("log_loss", "coverage", "error", "slip_loss")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--data-sets", type=int, default=200)
    parser.add_argument("--crowds", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=10, help="of each function, of `attentive`")
    parser.add_argument("--duels", type=int, default=30)
    parser.add_argument("--slip", type=float, default=0.05)
    parser.add_argument("--outputscales", nargs="+", type=float, default=[10.0, 100.0])


def _pairs(num: int, points: int, g: torch.Generator) -> Tensor:
    return torch.stack([torch.randperm(points, generator=g)[:2] for _ in range(num)])


def _answer(f: Tensor, pairs: Tensor, slips: Tensor, g: torch.Generator) -> Tensor:
    """Duels, winner first."""
    ahead = f[pairs[:, 0]] - f[pairs[:, 1]] + math.sqrt(2) * torch.randn(len(pairs), generator=g, dtype=f.dtype)
    first = torch.where(slips, torch.rand(len(pairs), generator=g) < 0.5, ahead > 0)
    return torch.where(first.unsqueeze(-1), pairs, pairs.flip(-1))


def _kernel(outputscale: float) -> ScaleKernel:
    kernel = ScaleKernel(RBFKernel())
    kernel.outputscale, kernel.base_kernel.lengthscale = outputscale, 0.2
    return kernel


def _log_loss(p: Tensor, truth: Tensor) -> float:
    p = p.clamp(1e-9, 1 - 1e-9)
    return -float(torch.where(truth, p, 1 - p).log().mean())


def _measures(name: str, X: Tensor, f: Tensor, duels: Tensor, slips: Tensor, outputscale: float, rate: float,
              new: Tensor) -> dict[str, float]:  # fmt: skip
    """The measures of one model of one data set."""
    likelihood = PreferenceLikelihood(slip=0.0 if name == "exact, no slips" else rate)
    began = time.process_time()
    model = SkewGP(
        X,
        Preference(duels),
        likelihood=likelihood,
        covar_module=_kernel(outputscale),
        mean_module=ConstantMean(),
        approximation="ep" if name == "EP" else None,
    ).eval()
    posterior = model.posterior(X)
    samples = posterior.rsample(torch.Size([2048])).squeeze(-1)
    seconds = time.process_time() - began
    differences = samples[:, new[:, 0]] - samples[:, new[:, 1]]
    truth = f[new[:, 0]] - f[new[:, 1]]
    tails = torch.tensor([0.5 - LEVEL / 2, 0.5 + LEVEL / 2], dtype=f.dtype)
    low, high = differences.quantile(tails, dim=0)
    wins = torch.special.ndtr(differences / math.sqrt(2)).mean(0)
    expected = torch.special.ndtr(truth / math.sqrt(2))
    wins = wins.clamp(1e-9, 1 - 1e-9)
    # the loss that attentive answers are expected to have
    loss = -(expected * wins.log() + (1 - expected) * (1 - wins).log()).mean()
    return {
        "log_loss": float(loss),
        "coverage": float(((low <= truth) & (truth <= high)).double().mean()),
        "error": float((differences.mean(0) - truth).square().mean().sqrt() / math.sqrt(2 * outputscale)),
        "slip_loss": math.nan if name == "exact, no slips" else _log_loss(model.slips(), slips),
        "seconds": seconds,
    }


def _of_duels(options: argparse.Namespace) -> Table:
    columns = [column for measure in MEASURES for column in (measure, f"{measure}_less_exact", f"{measure}_error")]
    table = Table(
        "slips_duels",
        ("outputscale", "slip", "duels", "model", "data_sets", *columns, "seconds"),
        notes=[environment(), f"load average at the start {load_average()}; paired differences with standard errors"],
    )
    for outputscale in options.outputscales:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in MODELS}
        for seed in range(options.data_sets):
            g = torch.Generator().manual_seed(seed)
            X = torch.rand(NUM_POINTS, 1, dtype=torch.double, generator=g)
            K = _kernel(outputscale)(X).to_dense().detach() + 1e-9 * outputscale * torch.eye(NUM_POINTS)
            f = torch.linalg.cholesky(K) @ torch.randn(NUM_POINTS, dtype=torch.double, generator=g)
            pairs = _pairs(options.duels, NUM_POINTS, g)
            slips = torch.rand(len(pairs), generator=g) < options.slip
            duels = _answer(f, pairs, slips, g)
            new = _pairs(NUM_NEW, NUM_POINTS, g)
            for name in MODELS:
                with torch.random.fork_rng(), torch.no_grad(), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    torch.manual_seed(seed)
                    found[name].append(_measures(name, X, f, duels, slips, outputscale, options.slip, new))
        base = {measure: torch.tensor([row[measure] for row in found["exact"]]) for measure in MEASURES}
        for name, rows in found.items():
            cells: dict[str, float | str | int] = {}
            for measure in MEASURES:
                values = torch.tensor([row[measure] for row in rows])
                less = values - base[measure]
                cells[measure] = float(values.mean())
                if name != "exact":
                    cells[f"{measure}_less_exact"] = float(less.mean())
                    cells[f"{measure}_error"] = float(less.std()) / math.sqrt(len(rows))
                else:
                    cells[f"{measure}_error"] = float(values.std()) / math.sqrt(len(rows))
            cells["seconds"] = float(torch.tensor([row["seconds"] for row in rows]).median())
            table.add(
                outputscale=outputscale,
                slip=options.slip,
                duels=options.duels,
                model=name,
                data_sets=len(rows),
                **cells,
            )
            say(f"{outputscale} {name}: " + ", ".join(f"{m} {cells[m]:.3f}" for m in MEASURES))
    return table


def _of_votes(options: argparse.Namespace) -> Table:
    likelihoods: dict[str, Callable[[], PreferenceLikelihood]] = {
        "slips of each": lambda: PreferenceLikelihood(slip=torch.full((MEMBERS,), 0.05), learn_slip=True),
        "one rate": lambda: PreferenceLikelihood(learn_slip=True),
        "reliabilities": PreferenceLikelihood,
        "neither": PreferenceLikelihood,
    }
    table = Table(
        "slips_votes",
        ("model", "crowds", "ranks_coverage", "ranks_error", "utilities_coverage", "utilities_error", "correlation",
         "rate_of_random", "rate_of_others", "seconds"),
        notes=[environment(), f"load average at the start {load_average()}; coverage of 90 % intervals"],
    )  # fmt: skip
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in likelihoods}
    for seed in range(options.crowds):
        g = torch.Generator().manual_seed(seed)
        f = SPREAD * torch.randn(ITEMS, dtype=torch.double, generator=g)
        pairs, judge = _pairs(MEMBERS * VOTES, ITEMS, g), torch.arange(MEMBERS * VOTES) % MEMBERS
        duels = _answer(f, pairs, judge >= MEMBERS - RANDOM, g)
        for name, likelihood in likelihoods.items():
            personal = ScaleKernel(RBFKernel()).requires_grad_(False)  # members differ in their slips alone
            personal.outputscale = 1e-6
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = SkewGP(
                    item_points(torch.arange(ITEMS)),
                    Preference(duels, judge=judge),
                    likelihood=likelihood(),
                    covar_module=default_item_covar_module(),
                    judge_covar_module=personal,
                    learn_judge_reliability=name == "reliabilities",
                )
                fit_skew_gp(model)
                with torch.no_grad(), torch.random.fork_rng():
                    torch.manual_seed(seed)
                    samples = model.posterior(model.datapoints).rsample(torch.Size([2048])).squeeze(-1)
            seconds = time.process_time() - began
            centred, truth = samples - samples.mean(-1, keepdim=True), f - f.mean()
            tails = torch.tensor([0.5 - LEVEL / 2, 0.5 + LEVEL / 2], dtype=f.dtype)
            low, high = centred.quantile(tails, dim=0)
            ranks = samples.argsort(-1, descending=True).argsort(-1).double() + 1
            of_truth = f.argsort(descending=True).argsort().double() + 1
            low_rank = ranks.quantile(tails[0], dim=0, interpolation="lower")
            high_rank = ranks.quantile(tails[1], dim=0, interpolation="higher")
            rates = model.likelihood.slip.detach().expand(MEMBERS)
            found[name].append((
                float(((low_rank <= of_truth) & (of_truth <= high_rank)).double().mean()),
                float(((low <= truth) & (truth <= high)).double().mean()),
                float(torch.corrcoef(torch.stack([centred.mean(0), truth]))[0, 1]),
                float(rates[MEMBERS - RANDOM :].mean()), float(rates[: MEMBERS - RANDOM].mean()), seconds,
            ))  # fmt: skip
    for name, rows in found.items():
        values = torch.tensor(rows)
        mean, error = values.mean(0), values.std(0) / math.sqrt(len(rows))
        table.add(
            model=name, crowds=len(rows), ranks_coverage=float(mean[0]), ranks_error=float(error[0]),
            utilities_coverage=float(mean[1]), utilities_error=float(error[1]), correlation=float(mean[2]),
            rate_of_random=float(mean[3]), rate_of_others=float(mean[4]), seconds=float(values[:, 5].median()),
        )  # fmt: skip
        say(f"{name}: ranks {mean[0]:.3f} +- {error[0]:.3f}, utilities {mean[1]:.3f}, correlation {mean[2]:.3f}")
    return table


def _of_attentive(options: argparse.Namespace) -> Table:
    names = ("regret", "wrong", "log_loss")
    columns = [column for name in names for column in (name, f"{name}_more", f"{name}_error")]
    table = Table(
        "slips_attentive",
        ("function", "noise", "duels", "model", "runs", *columns, "rate", "seconds"),
        notes=[environment(), f"load average at the start {load_average()}; differences to no slips are paired"],
    )
    unit = {"Branin": Branin(negate=True).double(), "Hartmann 3": Hartmann(3, negate=True).double()}
    for (function, problem), noise in product(unit.items(), (0.0, 0.2)):
        cube = torch.tensor([[0.0] * problem.dim, [1.0] * problem.dim], dtype=torch.double)
        found: dict[str, list[tuple[float, ...]]] = {"no slips": [], "learned rate": []}
        for seed in range(options.seeds):
            g = torch.Generator().manual_seed(seed)
            X = draw_sobol_samples(cube, n=20, q=1, seed=seed).squeeze(1)
            new = torch.rand(4000, problem.dim, dtype=torch.double, generator=g)
            f, of_new = (problem(problem.bounds[0] + (problem.bounds[1] - problem.bounds[0]) * Z) for Z in (X, new))
            pairs = _pairs(options.duels, len(X), g)
            felt = f[pairs] + noise * of_new.std() * torch.randn(pairs.shape, dtype=f.dtype, generator=g)
            duels = torch.where((felt[:, 0] > felt[:, 1]).unsqueeze(-1), pairs, pairs.flip(-1))
            for name, rows in found.items():
                began = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    likelihood = PreferenceLikelihood(learn_slip=name == "learned rate")
                    model = SkewGP(X, Preference(duels), likelihood=likelihood, approximation="ep")
                    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
                    with torch.no_grad():
                        best = model.posterior(X).mean.argmax()
                        ahead = model.posterior(new.view(-1, 2, problem.dim))
                        mean, covariance = ahead.mean.squeeze(-1), ahead.covariance_matrix
                variance = covariance[:, 0, 0] + covariance[:, 1, 1] - 2 * covariance[:, 0, 1]
                truth = of_new.view(-1, 2)
                truth = truth[:, 0] > truth[:, 1]
                z = (mean[:, 0] - mean[:, 1]) / (variance + 2).sqrt()
                rows.append((
                    float((f.max() - f[best]) / of_new.std()),
                    float(((z > 0) != truth).double().mean()),
                    _log_loss(torch.special.ndtr(z), truth),
                    float(model.likelihood.slip.detach()),
                    time.process_time() - began,
                ))  # fmt: skip
        values = {name: torch.tensor(rows) for name, rows in found.items()}
        for name, rows in values.items():
            more = rows - values["no slips"]
            cells: dict[str, float] = {"rate": float(rows[:, 3].mean()), "seconds": float(rows[:, 4].median())}
            for i, measure in enumerate(names):
                cells[measure] = float(rows[:, i].mean())
                if name != "no slips":
                    cells[f"{measure}_more"] = float(more[:, i].mean())
                    cells[f"{measure}_error"] = float(more[:, i].std()) / math.sqrt(len(rows))
            table.add(function=function, noise=noise, duels=options.duels, model=name, runs=len(rows), **cells)
            say(f"{function}, noise {noise}, {name}: " + ", ".join(f"{key} {cell:.4f}" for key, cell in cells.items()))
    return table


def run(options: argparse.Namespace) -> None:
    """Run it."""
    folder = prepare(options)
    parts = {"duels": _of_duels, "votes": _of_votes, "attentive": _of_attentive}
    publish([parts[part](options) for part in options.parts], folder)
