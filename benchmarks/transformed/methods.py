"""Predictions by transformed processes, by their baselines of maximum evidence, and by Gaussian processes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from typing import Any, NamedTuple

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms.outcome import Bilog, Log, Power
from botorch.models.utils.gpytorch_modules import MIN_INFERRED_NOISE_LEVEL
from gpytorch import Module
from gpytorch.kernels import RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import NormalPrior, Prior, UniformPrior
from torch import Tensor

from benchmarks.transformed.data import Data
from botorch_skewgp.transformed import BayesianTransformedGP
from botorch_skewgp.transformed.defaults import default_transformed_covar_module, default_transformed_likelihood
from botorch_skewgp.warpings import Affine, Arcsinh, BoxCox, Composition, SinhArcsinh, Warping

MAXIMUM_LIKELIHOOD = ", maximum likelihood"  # the end of the names of those without priors
NODES: dict[str, Any] = {"num_nodes": 64, "least_effective": 16.0}  # in four rounds
A_BC_OFFSET = 4.0  # for Box-Cox of arcsinh, whose inner map must be positive at all outcomes


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


class Score(NamedTuple):
    """The error of medians, the mean negative log density, and the share within central intervals of 90 %."""

    rmse: float
    nlpd: float
    coverage: float


def transformed_score(
    data: Data,
    warping: Warping,
    quadrature: str = "sobol",
    covar_module: RBFKernel | None = None,
    likelihood: GaussianLikelihood | None = None,
) -> Score:
    """A transformed process, with another kernel and noise than the default ones if they are given."""
    model = BayesianTransformedGP(
        data.X,
        data.Y,
        warping=warping,
        covar_module=covar_module,
        likelihood=likelihood,
        quadrature=quadrature,  # type: ignore[arg-type]
        **NODES,
    )
    with torch.no_grad():
        posterior = model.posterior(data.test_X.unsqueeze(-2), observation_noise=True)
        y = data.test_y.view(-1, 1, 1)
        level, median = posterior.cdf(y), posterior.median
        nlpd = -posterior.log_density(y).mean()
    return Score(
        float((median - y).square().mean().sqrt()),
        float(nlpd),
        float(((level > 0.05) & (level < 0.95)).double().mean()),
    )


class UniformInverseSquare(Prior):
    """The prior of a lengthscale `l` whose `l^-2` is uniform below a number: that of Zhu et al."""

    arg_constraints: dict[str, object] = {}

    def __init__(self, most: float) -> None:
        super().__init__(validate_args=False)
        self.most = most

    def log_prob(self, x: Tensor) -> Tensor:
        value = math.log(2 / self.most) - 3 * x.log()
        return torch.where(x.pow(-2) < self.most, value, -math.inf)


def paper_score(data: Data, name: str, unit: float) -> Score:
    """A transformed process of one input, of an interval as wide as `unit`, with the uniform priors of Zhu et al."""
    warping = WARPINGS[name]()
    if name == "BC":
        warping.register_prior("power_prior", UniformPrior(0.0, 20.0, validate_args=False), "power")
    noise = default_transformed_likelihood()
    noise.noise_covar.noise_prior = UniformPrior(0.0, 50.0, validate_args=False)
    return transformed_score(data, warping, "sobol", kernel_of_the_paper(unit), noise)


def kernel_of_the_paper(unit: float) -> RBFKernel:
    """Inverse squared lengthscales uniform on (0, 50), in the original units of an input."""
    kernel = RBFKernel(ard_num_dims=1, lengthscale_prior=UniformInverseSquare(50.0 * unit**2))
    kernel.lengthscale = 0.1
    return kernel


def maximum_likelihood_score(data: Data, warping: Warping) -> Score:
    """A transformed process without priors, at the mode of what is then the likelihood."""
    parts = warping, default_transformed_covar_module(data.X.shape[-1]), default_transformed_likelihood()
    for module in (module for part in parts for module in part.modules() if isinstance(module, Module)):
        module._priors.clear()  # noqa: SLF001  GPyTorch has no other way
    return transformed_score(data, warping, "mode", *parts[1:])


class Map(NamedTuple):
    """An outcome transform of a Gaussian process: what it is, and its inverse."""

    forward: Callable[[Tensor], Tensor]
    inverse: Callable[[Tensor], Tensor]


def _botorch(transform: Log | Bilog | Power) -> Map:
    return Map(lambda y: transform(y)[0], lambda z: transform.untransform(z)[0])


def _power_transform_y(y: Tensor) -> Map:
    """What Ax's PowerTransformY fits: scikit-learn's maximum likelihood Yeo-Johnson map."""
    from sklearn.preprocessing import PowerTransformer

    fitted = PowerTransformer(method="yeo-johnson").fit(y.numpy())
    return Map(
        lambda y: torch.as_tensor(fitted.transform(y.numpy())),
        lambda z: torch.as_tensor(fitted.inverse_transform(z.numpy())),
    )


IDENTITY = Map(lambda y: y, lambda z: z)


def gaussian_score(data: Data, map: Map) -> Score:
    """A SingleTaskGP of standardised transformed outcomes; its density, times the derivative of the transform."""
    model = SingleTaskGP(data.X, map.forward(data.Y))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    with torch.no_grad():
        posterior = model.posterior(data.test_X, observation_noise=True)
        y, step = data.test_y.unsqueeze(-1), 1e-6 * data.Y.std()
        z, above, below = (map.forward(y + shift) for shift in (0.0, step, -step))
        normal = torch.distributions.Normal(posterior.mean, posterior.variance.sqrt())
        log_density = normal.log_prob(z) + ((above - below) / (2 * step)).log()
        level = normal.cdf(z)
        error = (map.inverse(posterior.mean) - y).square().mean().sqrt()
    coverage = ((level > 0.05) & (level < 0.95)).double().mean()
    return Score(float(error), float(-log_density.mean()), float(coverage))


STEEPEST = 5.0  # tanh of GPy's warping, over a standard deviation of the outcomes
FARTHEST = 10.0  # median, in standard deviations
NORMAL_90 = 1.6449


def gpy_score(data: Data) -> Score:
    """GPy's WarpedGP: a sum of three hyperbolic tangents, by maximum likelihood from three starts.

    Its likelihood has no maximum: a tanh that is ever steeper at one outcome, and a linear part that is ever flatter,
    make the densities of the others nothing. Both are bounded here, and the noise from below as ours is, in units of
    the outcomes' standard deviation; outcomes are centered, since the tangents start around 0.
    """
    import GPy
    import numpy as np

    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  GPy has no other way
    center, unit = float(data.Y.mean()), float(data.Y.std())
    warping = GPy.util.warping_functions.TanhFunction(n_terms=3)
    X, Y = data.X.numpy(), ((data.Y - center) / unit).numpy()
    model = GPy.models.WarpedGP(X, Y, kernel=GPy.kern.RBF(X.shape[1], ARD=True), warping_function=warping)
    with redirect_stdout(StringIO()):
        warping.psi[:, :2].constrain_bounded(1e-3, STEEPEST, warning=False)
        warping.d.constrain_bounded(1e-2, STEEPEST, warning=False)
        warping.psi[:, :2], warping.d[:] = 1.0, 1.0
        model.likelihood.variance.constrain_bounded(MIN_INFERRED_NOISE_LEVEL, 1e3, warning=False)
        model.optimize_restarts(3, verbose=False, robust=True)
    test_X, test_Y = data.test_X.numpy(), ((data.test_y - center) / unit).unsqueeze(-1).numpy()
    nlpd = -float(model.log_predictive_density(test_X, test_Y).mean()) + math.log(unit)
    mean, variance = model._raw_predict(test_X)  # noqa: SLF001  of the warped outcome
    grid = np.linspace(-FARTHEST, FARTHEST, 20001)[:, None]  # GPy's own inverse, by Newton's method, diverges at times
    median = torch.as_tensor(np.interp(mean[:, 0], warping.f(grid)[:, 0], grid[:, 0])) * unit + center
    error = (warping.f(test_Y) - mean) / np.sqrt(variance + float(model.likelihood.variance[0]))
    coverage = float((np.abs(error) < NORMAL_90).mean())
    return Score(float((median - data.test_y).square().mean().sqrt()), nlpd, coverage)


RIVALS = ("GP", "GP, Bilog", "GP, PowerTransformY", "GP, Log", "GP, Power 0.5", "GPy WarpedGP")


def names_of(warpings: Iterable[str]) -> list[str]:
    """The names of methods of transformed processes: integrated, at their mode, and at the largest likelihood."""
    found = []
    for name in warpings:
        single = "CWGP" if "-" in name else "WGP"
        found += [f"{single}-{name}{MAXIMUM_LIKELIHOOD}", f"BTG-{name}", f"{single}-{name}"]
    return found


def methods(data: Data) -> dict[str, Callable[[], Score]]:
    """All methods that take the outcomes as they are."""
    positive = bool((data.Y > 0).all())
    found: dict[str, Callable[[], Score]] = {}
    for name in WARPINGS:
        if "BC" in name and not positive:
            continue
        likelihood, integrated, mode = names_of([name])
        found[likelihood] = lambda name=name: maximum_likelihood_score(data, WARPINGS[name]())
        found[integrated] = lambda name=name: transformed_score(data, WARPINGS[name]())
        found[mode] = lambda name=name: transformed_score(data, WARPINGS[name](), "mode")
    found["GP"] = lambda: gaussian_score(data, IDENTITY)
    found["GP, Bilog"] = lambda: gaussian_score(data, _botorch(Bilog()))
    found["GP, PowerTransformY"] = lambda: gaussian_score(data, _power_transform_y(data.Y))
    if positive:
        found["GP, Log"] = lambda: gaussian_score(data, _botorch(Log()))
        found["GP, Power 0.5"] = lambda: gaussian_score(data, _botorch(Power(power=0.5)))
    if find_spec("GPy") is not None:
        found["GPy WarpedGP"] = lambda: gpy_score(data)
    return found
