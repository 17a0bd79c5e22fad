"""Predictions of IntSine and of the six-hump camel beside those printed, and how flat a likelihood is (Zhu et al.)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Log, Power
from botorch.optim import optimize_acqf
from botorch.test_functions import Levy, SixHumpCamel
from botorch.utils.sampling import draw_sobol_samples
from gpytorch import Module
from gpytorch.kernels import RBFKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import NormalPrior, Prior
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks._functions import find_utility, unit_cube
from benchmarks._race import Cell, Group, Race, grid, mean_and_error
from botorch_skewgp.transformed import BayesianTransformedGP, TransformedLogExpectedImprovement
from botorch_skewgp.transformed.defaults import default_transformed_covar_module, default_transformed_likelihood
from botorch_skewgp.warpings import Affine, Arcsinh, BoxCox, Composition, SinhArcsinh, Warping

DOUBLE = torch.float64
NODES: dict[str, Any] = {"num_nodes": 64, "least_effective": 16.0}  # in four rounds
A_BC_OFFSET = 4.0  # for Box-Cox of arcsinh, whose inner map must be positive at all outcomes
MAXIMUM_LIKELIHOOD, LENGTHSCALES = ", maximum likelihood", ", lengthscales of the paper"  # ends of names of methods
FALL = 2.0  # of the log likelihood


class Data(NamedTuple):
    """Training and test points; test outcomes are compared with predictions of new outcomes."""

    X: Tensor
    Y: Tensor
    test_X: Tensor
    test_y: Tensor


def int_sine(seed: int) -> Data:
    """A sine rounded to integers: two steps, with a noise of 0.05; test outcomes are free of noise."""
    X = torch.linspace(-math.pi, math.pi, 51, dtype=DOUBLE).unsqueeze(-1)
    generator = torch.Generator().manual_seed(seed)
    noise = 0.05 * torch.randn(X.shape, generator=generator, dtype=DOUBLE)
    test_X = torch.linspace(-math.pi, math.pi, 400, dtype=DOUBLE).unsqueeze(-1)
    scaled = (X + math.pi) / (2 * math.pi), (test_X + math.pi) / (2 * math.pi)
    return Data(scaled[0], torch.sin(X).round() + 2 + noise, scaled[1], (torch.sin(test_X).round() + 2).squeeze(-1))


def camel(n: int, num_test: int, seed: int = 0) -> Data:
    """The six-hump camel on [-1, 1] x [-2, 2] at Sobol points, and without noise at random ones."""
    X = SobolEngine(2, scramble=True, seed=seed).draw(n, dtype=DOUBLE)
    X = torch.cat([X, torch.rand(num_test, 2, generator=torch.Generator().manual_seed(seed + 1), dtype=DOUBLE)])
    y = SixHumpCamel(bounds=[(-1.0, 1.0), (-2.0, 2.0)], dtype=DOUBLE)(X.new_tensor([2.0, 4.0]) * (X - 0.5))
    return Data(X[:n], y[:n].unsqueeze(-1), X[n:], y[n:])


def levy(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Points and outcomes of the Levy function of one input on (-10, 10), plus 1, with noise of 0.1."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n + 100, 1, generator=generator, dtype=DOUBLE)
    y = Levy(dim=1, dtype=DOUBLE)(20 * X - 10).unsqueeze(-1) + 1
    return X[:n], (y + 0.1 * torch.randn(X.shape, generator=generator, dtype=DOUBLE))[:n]


# Methods


def _arcsinh_box_cox() -> Warping:
    inner = Arcsinh()
    inner.register_prior("offset_prior", NormalPrior(A_BC_OFFSET, 1.0), "offset")
    inner.offset = A_BC_OFFSET
    return Composition([inner, BoxCox()])


WARPINGS: dict[str, Callable[[], Warping]] = {
    "I": Affine,
    "A": Arcsinh,
    "SA": SinhArcsinh,
    "BC": BoxCox,
    "L-SA": lambda: Composition([Affine(), SinhArcsinh()]),
    "A-BC": _arcsinh_box_cox,
}


def names_of(warpings: Iterable[str]) -> list[str]:
    """The names of methods of transformed processes: at the largest likelihood, and integrated."""
    singles = [f"{'CWGP' if '-' in name else 'WGP'}-{name}{MAXIMUM_LIKELIHOOD}" for name in warpings]
    return [*singles, *(f"BTG-{name}" for name in warpings)]


class UniformInverseSquare(Prior):
    """The prior of a lengthscale `l` whose `l^-2` is uniform below a number: that of Zhu et al."""

    arg_constraints: dict[str, object] = {}

    def __init__(self, most: float) -> None:
        super().__init__(validate_args=False)
        self.most = most

    def log_prob(self, x: Tensor) -> Tensor:
        value = math.log(2 / self.most) - 3 * x.log()
        return torch.where(x.pow(-2) < self.most, value, -math.inf)


def kernel_of_the_paper(unit: float) -> RBFKernel:
    """Inverse squared lengthscales uniform on (0, 50), in the original units of an input, an interval so wide."""
    kernel = RBFKernel(ard_num_dims=1, lengthscale_prior=UniformInverseSquare(50.0 * unit**2))
    kernel.lengthscale = 0.1
    return kernel


def score(data: Data, method: str) -> dict[str, float]:
    """The error of medians, the mean negative log density, and the share within central intervals of 90 %."""
    y = data.test_y.view(-1, 1, 1)
    if method == "GP":
        gaussian = SingleTaskGP(data.X, data.Y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(gaussian.likelihood, gaussian))
        with torch.no_grad():
            posterior = gaussian.posterior(data.test_X.unsqueeze(-2), observation_noise=True)
            normal = torch.distributions.Normal(posterior.mean, posterior.variance.sqrt())
            median, level, log_density = posterior.mean, normal.cdf(y), normal.log_prob(y)
    else:
        kind, _, name = method.partition(",")[0].partition("-")
        parts: dict[str, Any] = {"warping": WARPINGS[name](), "quadrature": "sobol" if kind == "BTG" else "mode"}
        if method.endswith(LENGTHSCALES):
            parts["covar_module"] = kernel_of_the_paper(2 * math.pi)
        if method.endswith(MAXIMUM_LIKELIHOOD):  # without priors, at the mode of what is then the likelihood
            parts["covar_module"] = default_transformed_covar_module(data.X.shape[-1])
            parts["likelihood"] = default_transformed_likelihood()
            for part in parts.values():
                for module in part.modules() if isinstance(part, torch.nn.Module) else ():
                    if isinstance(module, Module):
                        module._priors.clear()  # noqa: SLF001  GPyTorch has no other way
        model = BayesianTransformedGP(data.X, data.Y, **parts, **NODES)
        with torch.no_grad():
            law = model.posterior(data.test_X.unsqueeze(-2), observation_noise=True)
            median, level, log_density = law.median, law.cdf(y), law.log_density(y)
    inside = ((level > 0.05) & (level < 0.95)).double()
    measures = (median - y).square().mean().sqrt(), -log_density.mean(), inside.mean()
    return dict(zip(MEASURES, map(float, measures), strict=True))


# Races

MEASURES = ("rmse", "nlpd", "coverage")
SCALED = "nlpd_scaled"  # the density of outcomes over the largest one


def _means(nlpd: str, runs: Group) -> dict[str, Cell]:
    return {
        "runs": len(runs), "rmse": runs.mean("rmse"), "rmse_sd": runs.error("rmse") * len(runs) ** 0.5,
        nlpd: runs.mean(nlpd), "nlpd_sd": runs.error(nlpd) * len(runs) ** 0.5, "coverage_90": runs.mean("coverage"),
    }  # fmt: skip


def _flat(n: int, seed: int) -> dict[str, Cell]:
    """How far Box-Cox's parameter may go while the likelihood, at the best others, falls by two (figure 2)."""
    model = BayesianTransformedGP(*levy(n), warping=BoxCox(), num_nodes=4096, tolerance=0.0)
    nodes = model.weighted_nodes
    parameter = nodes.u[:, model.parameter_names().index("warping.raw_power")].exp()
    fall = nodes.log_likelihood.max() - nodes.log_likelihood
    inside = parameter[fall < FALL]
    return {"best": float(parameter[fall.argmin()]), "lowest": float(inside.min()), "highest": float(inside.max())}


# Optimisation of functions whose values spread over orders of magnitude

PROBLEMS = {"Goldstein-Price": "goldstein", "Rosenbrock": "rosenbrock2", "Colville": "colville"}
STEPS = {2: 14, 4: 15}  # evaluations after the first 2 dim + 2, by dim; regrets are those halfway, and at the end
FIRST_SEED = 200  # the acquisition function was chosen by a few of the seeds before
OF_LOOPS = ("halfway", "at_the_end")
SHIFT = 1e-3  # of the logarithm, for functions whose least value is 0

Suggest = Callable[[Tensor, Tensor], AcquisitionFunction]  # from points of the unit cube and values to be minimised


def _transformed(warping: Callable[[], Warping]) -> Suggest:
    def suggest(X: Tensor, y: Tensor) -> AcquisitionFunction:
        model = BayesianTransformedGP(X, y, warping=warping(), **NODES)
        return TransformedLogExpectedImprovement(model, best_f=y.min(), maximize=False)

    return suggest


def _gaussian(transform: Callable[[Tensor], Tensor]) -> Suggest:
    """Log expected improvement of a SingleTaskGP of transformed, then standardised outcomes."""

    def suggest(X: Tensor, y: Tensor) -> AcquisitionFunction:
        z = transform(y)
        model = SingleTaskGP(X, z)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return LogExpectedImprovement(model, best_f=z.min(), maximize=False)

    return suggest


POWER, LOG = Power(power=0.5), Log()
METHODS: dict[str, Suggest] = {
    "transformed, sinh-arcsinh": _transformed(SinhArcsinh),
    "transformed, arcsinh": _transformed(Arcsinh),
    "Standardize": _gaussian(lambda y: y),
    "Power 0.5": _gaussian(lambda y: POWER(y)[0]),
    "Log": _gaussian(lambda y: LOG(y + SHIFT)[0]),
}
TRANSFORMED = {"sinh_arcsinh": "transformed, sinh-arcsinh", "arcsinh": "transformed, arcsinh"}


def _optimise(problem: str, method: str, seed: int, smoke: bool = False) -> dict[str, Cell]:
    """The least value halfway and at the end; all methods of a seed start from the same points."""
    function = find_utility(PROBLEMS[problem])
    dim, unit = function.dim, unit_cube(function.dim)
    steps = 2 if smoke else STEPS[dim]
    X = draw_sobol_samples(unit, n=2 * dim + 2, q=1, seed=seed).squeeze(-2)
    y = -function.evaluate(X).unsqueeze(-1)
    for _ in range(steps):
        acquisition = METHODS[method](X, y)
        candidate, _ = optimize_acqf(acquisition, unit, q=1, num_restarts=4, raw_samples=64, options={"maxiter": 50})
        X = torch.cat([X, candidate])
        y = torch.cat([y, -function.evaluate(candidate).unsqueeze(-1)])
    least = y.squeeze(-1).cummin(0).values
    return {"halfway": float(least[-1 - steps // 2]), "at_the_end": float(least[-1])}


def _of_optimisation(runs: Group) -> dict[str, Cell]:
    cells: dict[str, Cell] = {f"median_{name}": 10 ** runs.median(name) for name in OF_LOOPS}
    cells |= {"log10": runs.mean("at_the_end"), "error": runs.error("at_the_end")}
    for name, ours in TRANSFORMED.items():
        mine, theirs = runs.beside("at_the_end", method=ours)
        cells[f"{name}_gains"], cells[f"{name}_error"] = mean_and_error(mine - theirs)
        cells[f"{name}_wins"] = int((theirs < mine).sum())
    return cells


RACES = (
    Race(
        "transformed_int_sine", [{}],
        grid(method=[*names_of(WARPINGS), "GP", *(f"BTG-{name}{LENGTHSCALES}" for name in WARPINGS)]), range(20),
        lambda method, seed: score(int_sine(seed), method), MEASURES, partial(_means, SCALED),
        ["over noise draws; densities of y / max y at the noise-free truth",
         "BTG, WGP and CWGP have this package's default priors, but for those with the paper's prior of lengthscales: "
         "uniform in their inverse squares, on (0, 50); or none"],
        derived=lambda row: {SCALED: float(row["nlpd"]) - float(int_sine(int(row["seed"])).Y.max().log())},
    ),
    Race(
        "transformed_camel", [{}], grid(method=[*names_of(("I", "SA", "L-SA")), "GP"]), range(10),
        lambda method, seed: score(camel(50, 400, seed), method), MEASURES, partial(_means, "nlpd"),
        ["the six-hump camel: 50 scrambled Sobol points, 400 test points, no noise"],
    ),
    Race("transformed_flat", grid(n=(8, 15, 30, 60)), [{}], range(1), _flat, ("best", "lowest", "highest"),
         notes=["Levy function, noise 0.1"]),
    Race(
        "transformed_loops", grid(problem=PROBLEMS), grid(method=METHODS), range(FIRST_SEED, FIRST_SEED + 10),
        _optimise, OF_LOOPS, _of_optimisation,
        ["values untransformed; 2 dim + 2 Sobol points first; log expected improvement; regrets",
         "gains, wins: log10 of the method's regret less that of a transformed process, from the same start"],
        derived=lambda row: {
            name: math.log10(max(float(row[name]) + find_utility(PROBLEMS[row["problem"]]).best, 1e-8))
            for name in OF_LOOPS
        }, pooled="problem", quick={"smoke": True},
    ),
)  # fmt: skip
