"""Data of plots: inputs on a grid, and the marginals of any BoTorch model's posterior there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.models.pairwise_gp import PairwiseGP
from botorch.posteriors import GPyTorchPosterior
from torch import Tensor
from torch.distributions import Normal

from botorch_skewgp.checking.linear_effects import categories_of
from botorch_skewgp.checks import as_count, as_names, as_tensor, check_class, check_parts
from botorch_skewgp.inputs.points import as_bounds
from botorch_skewgp.protocols import Ensemble, is_latent_model, members_of


class Marginals:
    """The marginals of a model's one output at `n` points."""

    def __init__(self, model: Model, X: Tensor) -> None:
        check_class(model, "model", Model)
        if model.num_outputs > 1:
            raise UnsupportedError(
                f"The model has {model.num_outputs} outputs; draw one of them by plot_map(None, bounds, "
                "lambda X: model.posterior(X).mean[:, 0])."
            )
        with torch.no_grad():
            posterior: Any = model.posterior(X)
            self.posterior = posterior
            self.of_mixture = "mixture_" if hasattr(posterior, "mixture_quantile") else ""  # of all members
            try:
                self.center, self.center_name = self._moment("mean"), "mean"
            except UnsupportedError:  # the mean does not exist, as under warpings with heavy tails
                if not hasattr(posterior, "median"):
                    raise
                self.center, self.center_name = self._moment("median"), "median"
        if self.center.ndim > 1:
            raise UnsupportedError(
                f"A batch of models, whose posterior {self.center_name} has shape {tuple(self.center.shape)} x 1, "
                "cannot be drawn at once; draw one of its members."
            )
        self.is_gaussian = isinstance(self.posterior, GPyTorchPosterior)

    @property
    def mean(self) -> Tensor:
        """The mean, `n`; raises `UnsupportedError` if it does not exist."""
        with torch.no_grad():
            return self._moment("mean")

    @property
    def variance(self) -> Tensor:
        """The variance, `n`; raises `UnsupportedError` if it does not exist."""
        with torch.no_grad():
            return self._moment("variance")

    @property
    def has_variance(self) -> bool:
        """Whether mean and variance exist."""
        try:
            return self.variance is not None
        except UnsupportedError:
            return False

    def _moment(self, name: str) -> Tensor:
        """A moment of the posterior, `n`; for an ensemble that of the mixture of its members."""
        moment: Tensor = getattr(self.posterior, self.of_mixture + name)
        return moment.squeeze(-1)

    def quantile(self, levels: Sequence[float], gaussian: bool = False) -> Tensor:
        """Quantiles at several levels, `k x n`; those of Gaussians of the same moments if wanted."""
        return self._evaluate("quantile", self.center.new_tensor(levels), gaussian)

    def density(self, values: Tensor, gaussian: bool = False) -> Tensor:
        """Densities at several values, `k x n`; those of Gaussians of the same moments if wanted."""
        return self._evaluate("density", values, gaussian)

    def _evaluate(self, name: str, values: Tensor, gaussian: bool) -> Tensor:
        if self.is_gaussian or gaussian:
            normal, at = Normal(self.mean, self.variance.sqrt()), values.unsqueeze(-1)
            return normal.icdf(at) if name == "quantile" else normal.log_prob(at).exp()
        try:
            with torch.no_grad():
                result: Tensor = getattr(self.posterior, self.of_mixture + name)(values)
        except NotImplementedError as error:
            raise UnsupportedError(f"The model's {type(self.posterior).__name__} has no {name}.") from error
        return result.reshape(len(values), len(self.center))

    @property
    def has_skewness(self) -> bool:
        """Whether the posterior tells its skewness, which mixtures of members do not."""
        return hasattr(self.posterior, self.of_mixture + "skewness")

    @property
    def skewness(self) -> Tensor:
        """The skewness, `n`."""
        if not self.has_skewness:
            raise UnsupportedError(f"The model's {type(self.posterior).__name__} has no skewness.")
        with torch.no_grad():
            return self._moment("skewness")


def check_bounds(
    bounds: Tensor, model: Model | None = None, dims: Sequence[int] | None = None, user: str = ""
) -> Tensor:
    """Check that bounds fit a model and can be drawn, and return them in the model's dtype and on its device."""
    check_parts(model=(model, Model))
    bounds = as_bounds(bounds)
    free, d = free_inputs(bounds), bounds.shape[1]
    if len(free) < d and (dims is None or not free):
        raise InputDataError(f"bounds must have lower ones below upper ones; got {bounds.tolist()}.")
    if model is not None:
        known = getattr(model, "dim", d)
        if known != d:
            raise InputDataError(f"bounds must be 2 x {known}, a column for each input of the model; got 2 x {d}.")
        bounds = like_inputs(bounds, model)
    if dims is not None and len(free) not in dims:
        wanted = " or ".join("one input" if k == 1 else "two inputs" for k in dims)
        raise UnsupportedError(
            f"{user} draws functions of {wanted}; got {len(free)}. Hold others fixed by equal bounds; plot_slices "
            "draws any number."
        )
    return bounds


def free_inputs(bounds: Tensor) -> list[int]:
    """The inputs that bounds do not hold fixed."""
    return (bounds[0] < bounds[1]).nonzero().flatten().tolist()


def points_between(bounds: Tensor, *values: Tensor) -> Tensor:
    """Points with given values of the free inputs, one tensor for each, and the others fixed."""
    X = bounds[0].repeat(len(values[0]), 1)
    X[:, free_inputs(bounds)] = torch.stack(values, dim=-1)
    return X


def are_between(points: Tensor, bounds: Tensor) -> Tensor:
    """Whether each of some points has the values of fixed inputs; up to rounding of single precision."""
    is_near = (points.to(bounds) - bounds[0]).abs() <= 1e-6 * (1 + bounds[0].abs())
    return is_near[:, bounds[0] == bounds[1]].all(-1).cpu()


def as_point(point: Any, name: str, dim: int | None) -> Tensor:
    """Check one finite point and return it as a `dim`-dim floating point tensor; raises `InputDataError`."""
    values = as_tensor(point, name)
    if dim is not None and values.numel() != dim:
        raise InputDataError(f"{name} must have {dim} elements, one for each input; got {values.numel()}.")
    if values.is_complex() or not values.isfinite().all():
        raise InputDataError(f"{name} must hold finite numbers; got {values.tolist()}.")
    return values.flatten() if values.is_floating_point() else values.flatten().double()


def like_inputs(X: Tensor, model: Model) -> Tensor:
    """Points in the dtype and on the device of a model's training points, if it has them."""
    inputs = getattr(model, "train_inputs", None)
    return X.to(inputs[0]) if inputs is not None and isinstance(inputs[0], Tensor) else X


def linspace(bounds: Tensor, i: int, num: int) -> Tensor:
    """Values of input `i` at even steps from its lower to its upper bound; at least 2, else `InputDataError`."""
    num = as_count(num, "resolution")
    lower, upper = bounds[:, i]
    return lower + (upper - lower) * torch.linspace(0, 1, num, dtype=bounds.dtype, device=bounds.device)


def values_of_category(model: Model, bounds: Tensor, i: int) -> Tensor | None:
    """The values between bounds of an input that a model reads as a category; `None` for a numeric input.

    They are the whole numbers, or those of the data if some are not whole.
    """
    member: Any = model.members[0] if isinstance(model, Ensemble) else model
    if known_data(model)[0] is None or i not in categories_of(member):
        return None
    lower, upper = bounds[:, i].tolist()
    values: Tensor = member.datapoints[:, i].unique().to(bounds)
    if bool((values == values.round()).all()):
        values = torch.arange(math.ceil(lower), math.floor(upper) + 1).to(bounds)
    values = values[(values >= lower) & (values <= upper)]
    return values if len(values) else None


def as_limits(limits: Any) -> tuple[float, float]:
    """The ends of a scale; raises `InputDataError` unless they are two finite numbers, the lower one first."""
    ends = as_tensor(limits, "limits")
    if ends.shape != (2,) or not ends.isfinite().all() or not bool(ends[0] < ends[1]):
        raise InputDataError(f"limits must be two finite numbers, the lower one first; got {limits!r}.")
    return ends[0].item(), ends[1].item()


def input_labels(bounds: Tensor, inputs: Sequence[str] | None = None) -> list[str]:
    """The names of the free inputs; raises `InputDataError` unless there is one for each input."""
    names = input_names(bounds.shape[1], inputs)
    return ["$x$"] if inputs is None and len(names) == 1 else [names[i] for i in free_inputs(bounds)]


def input_names(d: int, inputs: Sequence[str] | None = None) -> list[str]:
    """The names of all inputs, by default their numbers; raises `InputDataError` unless there is one for each."""
    return [f"$x_{{{i + 1}}}$" for i in range(d)] if inputs is None else as_names(inputs, "inputs", d)


def value_label(model: Model, name: str = "$f(x)$") -> str:
    """The label of an axis of values: its name, and the unit if it is the noise of one answer."""
    if not is_latent_model(model) or model.num_outputs != 1:
        return name
    likelihood = members_of(model, "value_label")[0].likelihood
    noise = getattr(likelihood, "noise", None)
    in_noise = isinstance(noise, Tensor) and not likelihood.takes_numbers and bool((noise == 1).all())
    return f"{name} (unit: noise of one answer)" if in_noise else name


def known_data(model: Model) -> tuple[Tensor | None, Sequence[Any]]:
    """The training points of a model, `n x d`, if it has them, and its observations."""
    first: Any = model.members[0] if isinstance(model, Ensemble) else model
    points = getattr(first, "datapoints", None)
    return (points if isinstance(points, Tensor) else None), getattr(first, "observations", ())


def known_duels(model: Model) -> Tensor:
    """The comparisons of a model's data as pairs of points, winner first, `m x 2`."""
    if isinstance(model, PairwiseGP):
        return model.comparisons
    pairs = [entry.duels.cpu() for entry in known_data(model)[1]]
    return torch.cat([torch.empty(0, 2, dtype=torch.long), *pairs])
