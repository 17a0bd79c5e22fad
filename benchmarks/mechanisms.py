"""What each mechanism of the core saves: seconds of a typical problem with it, and without, by a patch of one name."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from gpytorch.means import ZeroMean
from torch import Tensor

from benchmarks._observations import best_first, fitted, random_items, rbf_kernel
from benchmarks._race import Cell, Group, Race, grid
from benchmarks.steps import duel_model
from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood, skew_gp_mll
from botorch_skewgp.models import prior_model, row_model
from botorch_skewgp.observations import Binary, Censored, Choice, Numeric, Preference
from botorch_skewgp.truncated import draws
from botorch_skewgp.truncated.draws import DrawSettings
from botorch_skewgp.truncated.priors import BorderedPrior
from botorch_skewgp.truncated.propagation import steps
from botorch_skewgp.truncated.samplers import hamiltonian, reflective_ess
from botorch_skewgp.truncated.samplers.sampler import SamplerState

DIM, NOISE = 3, 0.3
Measured = Callable[[], object]


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _points(n: int) -> Tensor:
    return torch.rand(n, DIM, dtype=torch.double, generator=_generator())


def _utility(X: Tensor) -> Tensor:
    return torch.sin(5 * X[..., 0]) + 1.5 * torch.cos(4 * X[..., 1]) * X[..., 0]


def _items(n: int, m: int, kind: Any = Preference, k: int = 2, **settings: Any) -> SkewGP:
    X = _points(n)
    items, _ = best_first(_utility(X), random_items(n, m, k, _generator(1)), NOISE**2, _generator(2))
    return SkewGP(X, kind(items), **settings)


def _labels(n: int) -> SkewGP:
    X = _points(n)
    return SkewGP(X, Binary(_utility(X) + 0.3 * torch.randn(n, generator=_generator(1)) > 0.5))


def _numbers(n: int, m: int) -> SkewGP:
    index = torch.randint(n, (m,), generator=_generator(1))
    X = _points(n)
    return SkewGP(X, Numeric(_utility(X)[index] + 0.1 * torch.randn(m, generator=_generator(2)), index=index))


def _narrow(n: int) -> SkewGP:
    X = _points(n)
    middle = _utility(X) + 0.1 * torch.randn(n, generator=_generator(1))
    return SkewGP(X, [Censored(middle - 1e-3, middle + 1e-3), Binary(_utility(X) > 0.5)])


def _equal(n: int, variance: float) -> SkewGP:
    X, answers = torch.full((1, 1), 0.2).double(), Binary([1], index=[0], count=n)
    return SkewGP(X, answers, covar_module=rbf_kernel(variance, 1.0), mean_module=ZeroMean())


def _objective(model: SkewGP) -> Measured:
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()

    def evaluate() -> None:
        mll.reset()
        mll(model(*model.train_inputs), model.train_targets).backward()

    return evaluate


def _first_posterior(model: SkewGP) -> Measured:
    X = torch.rand(100, model.train_inputs[0].shape[-1], dtype=torch.double, generator=_generator(9))

    def ask() -> Tensor:
        model.train()  # forgets the draws
        posterior = model.eval().posterior(X)
        return posterior.mean + posterior.variance

    return ask


class Mechanism(NamedTuple):
    """How a mechanism is taken away, and what shows its worth."""

    name: str
    owner: Any
    attribute: str
    without: Any
    problem: str
    make: Callable[[], Measured]


def _unchosen(sampler: hamiltonian.HamiltonianSampler, num_chains: int, generator: torch.Generator) -> SamplerState:
    """Starts half from the Gaussian and half from the prior, whatever their density."""
    w, _ = sampler.propose(num_chains, generator)
    factor = sampler._approximation.product  # noqa: SLF001
    w[:, ::2] = torch.linalg.solve_triangular(factor.latent_root, w[:, ::2] - factor.latent_mean[:, None], upper=True)
    return sampler.init(w.mT)


MECHANISMS = (
    Mechanism("extrapolated sweeps", steps, "SETTINGS", steps.SETTINGS._replace(near=-2.0),
        "1,000 labels, evidence and gradient", lambda: _objective(_labels(1000))),
    Mechanism("sums by pairs of points", row_model, "keeps_digits", lambda *_: False,
        "5,000 duels of 300 items, evidence and gradient", lambda: _objective(_items(300, 5000))),
    Mechanism("noise of events in blocks", row_model, "BorderedPrior", lambda *parts: BorderedPrior(*parts).wide,
        "300 choices of 4, evidence and gradient", lambda: _objective(_items(35, 300, Choice, 4))),
    Mechanism("many numbers by their information", row_model.RowModel, "_number_information", property(lambda _: None),
        "2,000 numbers at 40 points, evidence and gradient", lambda: _objective(_numbers(40, 2000))),
    Mechanism("looser sweeps from sites nearby", skew_gp_mll, "TOLERANCE_NEARBY", 1e-7, "fit of 300 duels",
        lambda: lambda: fitted(duel_model(300))),
    Mechanism("merging of equal rows", prior_model, "MAX_SINGLE_ROWS", 10**9,
        "10,000 duels of 40 items, first posterior", lambda: _first_posterior(_items(40, 10_000))),
    Mechanism("Hamiltonian trajectories", draws, "choose_sampler", lambda *_: "reflective",
        "1,000 duels of 40 items, first posterior", lambda: _first_posterior(_items(40, 1000))),
    Mechanism("the stretch of their Gaussian", hamiltonian.HamiltonianSampler, "_fit_preconditioner", lambda *_: False,
        "10,000 equal answers, prior variance 25, first posterior", lambda: _first_posterior(_equal(10_000, 25.0))),
    Mechanism("starts chosen from a pool", hamiltonian.HamiltonianSampler, "_first", _unchosen,
        "300 duels of 40 items with slips, first posterior", lambda: _first_posterior(_items(
            40, 300, likelihood=PreferenceLikelihood(slip=0.05), draw_settings=DrawSettings(sampler="hamiltonian")))),
    Mechanism("rows that act like numbers drawn last", draws, "gaussian_rows",
        lambda found: torch.zeros_like(found.mean, dtype=torch.bool),
        "50 narrow intervals and labels, first posterior", lambda: _first_posterior(_narrow(50))),
    Mechanism("the slowest functionals diagnosed", draws, "DIAGNOSED", 10**6, "300 duels, first posterior",
        lambda: _first_posterior(duel_model(300))),
    Mechanism("compiled trajectories", reflective_ess, "uses_numba", lambda *_: False,
        "20 duels, first posterior", lambda: _first_posterior(duel_model(20))),
)  # fmt: skip


def _run(mechanism: str, seed: int) -> dict[str, Cell]:
    """Seconds with a mechanism and without it; the model is built in the same state."""
    (entry,) = (entry for entry in MECHANISMS if entry.name == mechanism)
    with_it = _seconds(entry.make())
    with patch.object(entry.owner, entry.attribute, entry.without):
        return {"problem": entry.problem, "with_s": with_it, "without_s": _seconds(entry.make())}


def _seconds(measured: Measured) -> float:
    measured()  # what is imported, compiled or kept on first use
    began = time.process_time()
    measured()
    return time.process_time() - began


def _columns(runs: Group) -> dict[str, Cell]:
    least, without = (float(runs.values(name).min()) for name in ("with_s", "without_s"))
    return {"problem": runs.cell("problem"), "with_s": least, "without_s": without, "ratio": without / least}


CASES = grid(mechanism=[entry.name for entry in MECHANISMS])
RACES = (Race("mechanisms", CASES, [{}], range(5), _run, ("problem", "with_s", "without_s"), _columns),)
