r"""One call for answers of many people: the kernels of what all share and of each person's own part, chosen and fitted.

Parts are compared by their evidence, which integrates over the latent function and so over everybody's tastes: only
hyperparameters are counted against a part, one nat for each ([Akaike1974new]_).

How much people's tastes differ is fitted, and the likelihood is often largest where they do not differ in some
direction: intervals of everybody's tastes would be too narrow then. So their covariance `S`, in the directions that
answers tell, has a prior that is zero there, a power of `|S|` as in [Chung2015weakly]_. With the first power the mode
given a taste of `J` people, whose squares add up to `A`, is `A / (J - 2)`: the variance of one person more where
`log S` is flat and averaged over. The scale of what all share is kept from zero too.

.. [Akaike1974new] Akaike. A new look at the statistical model identification. 1974.
.. [Chung2015weakly] Chung, Gelman, Rabe-Hesketh, Liu, Dorie. J. of Educational and Behavioral Statistics 40, 2015.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cached_property, partial, reduce
from itertools import accumulate
from operator import add
from typing import Any, NamedTuple

import torch
from botorch.exceptions.errors import InputDataError, ModelFittingError, UnsupportedError
from botorch.exceptions.warnings import OptimizationWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms.input import ChainedInputTransform, InputTransform, Normalize
from botorch.models.transforms.input import NumericToCategoricalEncoding as Encoding
from gpytorch.kernels import AdditiveKernel, Kernel, LinearKernel, RBFKernel, ScaleKernel
from gpytorch.priors import GammaPrior, HalfCauchyPrior, LogNormalPrior
from linear_operator.utils.errors import NotPSDError
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor
from torch.nn import Parameter
from torch.nn.functional import one_hot

from botorch_skewgp.checks import as_count
from botorch_skewgp.exceptions import CompetingExplanationsWarning
from botorch_skewgp.fitting.spreads import (
    deviations_of_judges,
    few_deviations_fixed,
    fixed,
    has_few_answers,
    learn_spreads,
)
from botorch_skewgp.inputs.columns import as_columns
from botorch_skewgp.inputs.points import check_train_X
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    RowLikelihood,
    default_likelihood,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewGP
from botorch_skewgp.models.defaults import COMPARISON_TASTES, default_covar_module
from botorch_skewgp.models.inducing import choose_inducing_points
from botorch_skewgp.models.inputs import as_sequence, check_observations
from botorch_skewgp.models.panel import judges_of
from botorch_skewgp.observations import Observation
from botorch_skewgp.parameters import LogarithmPrior, register_named_prior

LENGTHSCALE, LENGTHSCALE_SPREAD = 0.3, 0.7  # of smooth parts: a median of .3 sqrt(d), two thirds within a factor of 2
STARTS = 0.1, 0.3, 1.0  # of lengthscales, in sqrt(d), as the evidence of a narrow part may fall at a long one
NOISE_PRIOR = (-2.0, 1.5)  # of numbers, as beside labels and comparisons
MAX_FULL = 10  # inputs up to which everybody's tastes have a full covariance at once
START_OF_RANK = 0.3  # the size of the entries of a new direction of tastes, in units of the noise
MAX_RANK = 8
SHARED_SCALE = (math.log(3.0), 2.5)  # of the variance of shared linear effects: its logarithm's mean and spread
KEPT_APART = 1e-6  # a variance added to that of tastes, whose logarithm is taken
LOADING = 0.3  # the scale of the prior of loadings, which are many: left free they promise more than people keep
NEARLY_NONE = -6.0  # of a scale, before its constraint: a variance of .0025
ENOUGH = 1e-6  # of the evidence, as a change in a step of a fit; of a thousand answers a thousandth of a nat
SCREENED = 0.1  # likewise, in nats, of a fit that tells whether another one is worth while


def fit_panel(
    train_X: Tensor,
    observations: Observation | Sequence[Observation],
    categories: Sequence[int] = (),
    num_inducing: int = 60,
) -> SkewGP:
    r"""Fit a model of answers of many people, with those of its parts that the evidence asks for.

    Inputs are scaled to the unit cube by their ranges; numbers of categories become a column of 0 and 1 for each.
    The first model has

    - a linear utility that all share;
    - each person's own linear tastes, with a full covariance, for comparisons alone; each person's own level for grades
      and labels, with a factor of the distances between cut-points for grades.

    Then further parts are tried one after another, each fitted from where the last fit ended. A part stays if it can be
    fitted and raises the log evidence by more than one nat for each of its hyperparameters. A smooth one, and slips,
    are refused without a fit if the evidence falls with their size from nearly none (of a smooth one at each of three
    lengthscales, and the best of these is its start), and without a fit of all if they do not raise it with all else as
    it was:

    1. for grades and labels, and for comparisons with more than ten columns: directions in which people's tastes (or
       abilities) differ, one by one until one does not stay, and then two at once; a half-Cauchy prior of scale
       0.3 shrinks loadings on abilities to what the answers of several items determine;
    2. for grades and labels, where no direction stayed: an own effect of each input, independent of the others;
    3. a smooth part of what all share (an RBF kernel with one lengthscale), and then a lengthscale for each number;
    4. for comparisons, a smooth part of everybody's own, likewise;
    5. without people, or with one answer of each, the default kernel of `SkewGP` in place of what is shared: it stays
       if its evidence is larger;
    6. a rate of slips.

    How much people differ in the use of the grades is learned last, see `botorch_skewgp.fitting.spreads`. Where it is
    integrated over, slips must be worth their nat beside it too.
    Kernels that are linear need no more inducing points than columns and are exact; smooth ones have `num_inducing`
    beside these.

    Example:
        >>> answers = Choice([[0, 1, 2], [3, 4, 5], [6, 1, 0], [7, 8, 2]], judge=[0, 0, 1, 1])
        >>> model = fit_panel(train_X, answers)
        >>> probabilities = model.predictive(train_X[:3], judge=1).probs

    Args:
        train_X: An `n x d` tensor of all points that observations refer to, in any units.
        observations: One observation object or a sequence of them; people are named by `judge=`. Without two people
            there are no own parts.
        categories: The inputs that are numbers of categories from 0, such as brands or the items of a questionnaire.
        num_inducing: The number of inducing points of smooth parts; all distinct points if they are not more.

    Returns:
        The fitted model, with `approximation="ep"`, in evaluation mode.

    Raises:
        InputDataError: If there are no answers, or an input of categories is no input, or does not hold whole numbers
            from 0 on.
        UnsupportedError: If there are numbers beside answers of several people.
    """
    check_train_X(train_X, warn=False)
    observations = as_sequence(observations)
    check_observations(observations, train_X)
    if not any(entry.num_answers for entry in observations):
        raise InputDataError("observations must hold an answer or more; there are none.")
    num_judges = max(judges_of(observations), default=-1) + 1 if len(judges_of(observations)) > 1 else 0
    if num_judges and any(entry.anchors_scale for entry in observations):
        raise UnsupportedError("Numbers of several people need the exact model: SkewGP without inducing points.")
    num_inducing = as_count(num_inducing, "num_inducing", least=1)
    panel = _Panel(train_X, observations, _Columns(train_X, categories), num_judges, num_inducing)
    with warnings.catch_warnings():
        for category in (OptimizationWarning, NumericalWarning, CompetingExplanationsWarning):  # on the way
            warnings.simplefilter("ignore", category)
        best = panel.fitted(panel.first())
        for part in panel.parts:
            while (larger := panel.with_part(best, part)) is not None:
                best = larger
        candidates = [best] if (larger := panel.with_part(best, panel.slips)) is None else [best, larger]
        if not (deviations_of_judges(best) and has_few_answers(best)):
            candidates = candidates[-1:]
        # somebody's own use of the grades looks like slips until it is integrated over
        scores = [_with_spreads(model) - number for number, model in enumerate(candidates)]
        best = candidates[scores.index(max(scores))]
    return best.eval()


def _with_spreads(model: SkewGP) -> float:
    """The log evidence of a model after it was learned how much people differ, and priors."""
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
    return learn_spreads(mll, partial(fit_gpytorch_mll, mll, optimizer_kwargs={"options": {"ftol": ENOUGH}}))


class _Columns:
    """What inputs become: numbers in the unit cube, and a column of 0 and 1 for each of `sizes[i]` categories."""

    def __init__(self, X: Tensor, categories: Sequence[int]) -> None:
        dim = X.shape[-1]
        self.sizes: dict[int, int] = {}
        for i in sorted(as_columns(categories, dim, "categories")):
            if bool(((X[:, i] != X[:, i].round()) | (X[:, i] < 0)).any()):
                raise InputDataError(
                    f"Input {i} of categories must hold whole numbers from 0 on; got {X[:5, i].tolist()}."
                )
            self.sizes[i] = max(2, int(X[:, i].max()) + 1)  # BoTorch encodes no single category
        low, high = X.amin(0), X.amax(0)
        self.bounds = torch.stack([low, torch.where(high > low, high, low + 1.0)])
        self.numbers = [i for i in range(dim) if i not in self.sizes]
        self.first = [0, *accumulate(self.sizes.get(i, 1) for i in range(dim))]
        self.of_numbers, self.num = [self.first[i] for i in self.numbers], self.first[-1]

    def transform(self) -> InputTransform:
        dim = self.bounds.shape[-1]
        parts: dict[str, InputTransform] = {}
        if self.numbers:
            parts["scaled"] = Normalize(dim, indices=self.numbers, bounds=self.bounds)
        if self.sizes:
            encoders: dict[int, Any] = {i: partial(_one_hot, place=i, num=size) for i, size in self.sizes.items()}
            parts["encoded"] = Encoding(dim, dict(self.sizes), encoders)
        return ChainedInputTransform(**parts) if len(parts) > 1 else next(iter(parts.values()))

    def told(self, level: bool) -> Tensor:
        """The contrasts of a level and effects of columns that answers tell, of which some do not tell the level."""
        size, firsts = self.num + 1, [1 + self.first[i] for i in self.sizes]
        contrasts = torch.eye(size, dtype=torch.float64)
        contrasts[0, firsts] = 1.0
        for i, first in zip(self.sizes, firsts, strict=True):
            contrasts[first : first + self.sizes[i], first] -= 1.0
        return contrasts[[i for i in range(size) if i not in firsts and (level or i)]]

    def spanning(self) -> Tensor:
        """Points from whose values a constant and a linear function are known everywhere."""
        base = self.bounds[0].clone()
        base[list(self.sizes)] = 0.0
        points = [base]
        for i, end in enumerate(self.bounds[1]):
            for value in torch.arange(1, self.sizes[i]).tolist() if i in self.sizes else [float(end)]:
                points.append(base.index_fill(0, torch.tensor(i, device=base.device), value))
        return torch.stack(points)


def _told_sizes(kernel: Any) -> Tensor:
    """The diagonal of the factor of the covariance of tastes in told directions, whose squared product is `|S|`."""
    root = kernel.told.to(kernel.root) @ kernel.root
    return torch.linalg.cholesky(root @ root.mT + KEPT_APART * torch.eye(len(root)).to(root)).diagonal()


def _set_by_entries(kernel: Any, sizes: Tensor) -> None:
    """Fits that start again set the entries of the factor, whose prior this one multiplies."""


def _one_hot(values: Tensor, place: int, num: int) -> Tensor:
    """A column of 0 and 1 for each category of an input; raises `InputDataError` for others."""
    if bool(((values < 0) | (values >= num)).any()):
        raise InputDataError(
            f"Input {place} must hold numbers of categories from 0 to {num - 1}; got {values.unique().tolist()[-5:]}."
        )
    return one_hot(values, num)


class Grown(NamedTuple):
    """A larger model, not fitted."""

    model: SkewGP
    num_added: int  # hyperparameters
    new: list[Parameter]  # these, if they are few: they are fitted alone first
    scale: Parameter | None = None  # the one of these that is the size of the part, which starts from none


class _Panel:
    """The data of a panel, and the parts that its models may have."""

    def __init__(
        self, X: Tensor, observations: Sequence[Observation], columns: _Columns, num_judges: int, num_inducing: int
    ) -> None:
        self.X, self.observations, self.columns = X, observations, columns
        self.num_judges, self.num_inducing = num_judges, num_inducing
        self.compares = all(entry.points_per_observation > 1 for entry in observations if entry.tells_values)
        self.has_full_tastes = self.compares and columns.num <= MAX_FULL
        self._known: dict[SkewGP, float] = {}

    @property
    def parts(self) -> list[Callable[[SkewGP], list[Grown]]]:
        """Further parts in the order of trial, each by the models that it may start from; none from a model
        that has it, or cannot have it.
        """
        directions = [partial(self.directions, number) for number in (1, 2)]
        curved = [partial(f, is_own) for is_own in (False, True) for f in (self._smooth_part, self._lengthscales)]
        return [*directions, self._own_effects, *curved, self._default_kernel]

    def first(self) -> SkewGP:
        """The first model, not fitted."""
        own: Kernel = LinearTastesKernel(0)
        if self.compares:
            rank = None if self.has_full_tastes else 1
            own = LinearTastesKernel(self.columns.num, rank=rank, scale=COMPARISON_TASTES)
            if self.has_full_tastes:
                own.register_buffer("told", self.columns.told(any(entry.tells_level for entry in self.observations)))
                own.register_prior("told_prior", GammaPrior(3.0, 1 / COMPARISON_TASTES), _told_sizes, _set_by_entries)
        likelihood = _with_stretches(default_likelihood(self.observations), self.num_judges)
        shared = LinearKernel()  # whose own argument for a prior cannot be pickled
        register_named_prior(shared, "variance", LogarithmPrior(*SHARED_SCALE))
        return self._model([shared], [own] if self.num_judges else [], likelihood)

    def _model(self, shared: list[Kernel], own: list[Kernel], likelihood: RowLikelihood) -> SkewGP:
        """A model of copies of parts."""
        shared, own, likelihood = deepcopy((shared, own, likelihood))
        points = self.columns.spanning()
        return SkewGP(
            self.X,
            self.observations,
            likelihood=likelihood,
            covar_module=reduce(add, shared),
            judge_covar_module=reduce(add, own) if own else None,
            input_transform=self.columns.transform(),
            inducing_points=points if _is_linear(shared) else torch.cat([points, self._spread]).unique(dim=0),
            approximation="ep",
        )

    @cached_property
    def _spread(self) -> Tensor:
        """Inducing points of smooth parts, among those that were answered about."""
        used = torch.cat([getattr(entry, entry.index_field).flatten() for entry in self.observations]).unique()
        distinct = self.X[used[used >= 0]].unique(dim=0)
        if len(distinct) <= self.num_inducing:
            return distinct
        transform, kernel = self.columns.transform().to(distinct), self._smooth(LENGTHSCALE).to(distinct)
        return choose_inducing_points(distinct, transform(distinct), kernel, self.num_inducing)

    def _smooth(self, lengthscale: float, each: bool = False) -> ScaleKernel:
        """A smooth part, of which a fit may take away; of one lengthscale in `sqrt(d)`, or one for each number."""
        num = len(self.columns.numbers)
        prior = LogNormalPrior(math.log(LENGTHSCALE * math.sqrt(num)), LENGTHSCALE_SPREAD)
        smooth = RBFKernel(num if each else None, lengthscale_prior=prior, active_dims=self.columns.of_numbers)
        smooth.lengthscale = lengthscale * math.sqrt(num)
        return ScaleKernel(smooth, outputscale_prior=HalfCauchyPrior(1.0))

    def fitted(self, model: SkewGP, tolerance: float = ENOUGH) -> SkewGP:
        """The model itself, fitted."""
        mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
        with few_deviations_fixed(model):
            fit_gpytorch_mll(mll, optimizer_kwargs={"options": {"ftol": tolerance}})
        mll.eval()
        return model

    def with_part(self, best: SkewGP, part: Callable[[SkewGP], list[Grown]]) -> SkewGP | None:
        """A fitted model with one more part; `None` if it is not worth its hyperparameters, or cannot be fitted."""
        before = self._evidence(best)
        screened = [(self._screened(grown, before), grown) for grown in part(best)]
        least, grown = max(screened, key=lambda entry: entry[0], default=(-math.inf, None))
        if grown is None or least <= -math.inf:
            return None
        try:
            return grown.model if self._evidence(self.fitted(grown.model)) - before > grown.num_added else None
        except (ModelFittingError, NotPSDError):
            return None

    def _evidence(self, model: SkewGP) -> float:
        """The log evidence of a fitted model."""
        if model not in self._known:
            self._known[model] = _evidence(model)
        return self._known[model]

    def _screened(self, grown: Grown, before: float) -> float:
        """The evidence with the new parameters fitted alone; `-inf` unless it gains half of what is beyond a nat."""
        model, _, new, scale = grown
        if not new:
            return before
        try:
            if scale is not None and not _rises(model, scale):
                return -math.inf
            with fixed(p for p in model.parameters() if not any(p is q for q in new)):
                after = _evidence(self.fitted(model, SCREENED / max(1.0, abs(before))))
            return after if after - before > (grown.num_added - 1) / 2 else -math.inf
        except (ModelFittingError, NotPSDError):
            return -math.inf

    def directions(self, number: int, best: SkewGP) -> list[Grown]:
        """More directions in which people's tastes differ."""
        d, own = self.columns.num, _summands(best.judge_covar_module)
        if not own or self.has_full_tastes:
            return []
        old = own[0].root.detach()
        before = old.shape[-1] if len(old) == d + 1 else 0
        rank = before + number
        if rank > min(MAX_RANK, d + 1):
            return []
        scale = COMPARISON_TASTES if self.compares else LOADING
        tastes = LinearTastesKernel(d, rank=rank, scale=scale).to(old)
        generator = torch.Generator().manual_seed(rank)
        start = START_OF_RANK * torch.randn(d + 1, rank, generator=generator, dtype=torch.float64).to(old)
        start[: len(old), :before] = old[:, :before]
        start[0, 0] = old[0, 0]
        tastes.raw_root.data.copy_(start)
        num_added = int(tastes.taste_mask.sum() - own[0].taste_mask.sum())
        return [Grown(self._model(_summands(best.covar_module), [tastes, *own[1:]], best.likelihood), num_added, [])]

    def _own_effects(self, best: SkewGP) -> list[Grown]:
        """An own effect of each column."""
        d, own = self.columns.num, _summands(best.judge_covar_module)
        if not own or len(own[0].root) > 1:
            return []
        tastes = LinearTastesKernel(d, diagonal=True).to(own[0].raw_root)
        tastes.raw_root.data.mul_(START_OF_RANK)
        tastes.raw_root.data[0, 0] = own[0].raw_root[0, 0].item()
        return [Grown(self._model(_summands(best.covar_module), [tastes], best.likelihood), d, [])]

    def _smooth_part(self, is_own: bool, best: SkewGP) -> list[Grown]:
        """A smooth part of what all share, or of everybody's own, from each of several lengthscales."""
        parts = _summands(best.judge_covar_module if is_own else best.covar_module)
        if len(parts) != 1 or not self.columns.numbers or (is_own and not self.compares):
            return []
        return [self._with_smooth(is_own, best, self._smooth(start), 2) for start in STARTS]

    def _lengthscales(self, is_own: bool, best: SkewGP) -> list[Grown]:
        """A lengthscale for each number in the smooth part; also where one for all, which others may lengthen, did not
        stay.
        """
        parts, num = _summands(best.judge_covar_module if is_own else best.covar_module), len(self.columns.numbers)
        if num < 2 or not parts or (is_own and len(parts) == 1):
            return []
        each = self._smooth(STARTS[0], each=True)
        if len(parts) == 1:
            return [self._with_smooth(is_own, best, each, 1 + num)]
        one = parts[1]
        if one.base_kernel.lengthscale.numel() == num:
            return []
        each = each.to(one.outputscale)
        each.outputscale, each.base_kernel.lengthscale = one.outputscale.detach(), one.base_kernel.lengthscale.detach()
        return [self._with_smooth(is_own, best, each, num - 1)._replace(scale=None)]

    def _with_smooth(self, is_own: bool, best: SkewGP, smooth: Kernel, num_added: int) -> Grown:
        """A model with a smooth part, in place of the one that it may have."""
        parts = [_summands(best.covar_module), _summands(best.judge_covar_module)]
        parts[is_own] = [parts[is_own][0], smooth]
        larger = self._model(parts[0], parts[1], best.likelihood)
        new = [*_summands(larger.judge_covar_module if is_own else larger.covar_module)[1].parameters()]
        return Grown(larger, num_added, new, new[0])

    def _default_kernel(self, best: SkewGP) -> list[Grown]:
        """The default kernel in place of what is shared, where people are none, or are told by one answer each."""
        num_answers = sum(entry.num_answers for entry in self.observations)
        if num_answers > max(1, self.num_judges) and self.num_judges:
            return []
        kernel = default_covar_module(self.columns.num, self.observations)
        return [Grown(self._model([kernel], _summands(best.judge_covar_module), best.likelihood), 0, [])]

    def slips(self, best: SkewGP) -> list[Grown]:
        """A rate of slips."""
        likelihood = deepcopy(best.likelihood)
        slipping = [part for part in _slipping(likelihood) if not part.learns_slips]
        if not slipping:
            return []
        for part in slipping:
            part.start_slips()
        larger = self._model(_summands(best.covar_module), _summands(best.judge_covar_module), likelihood)
        new = [part.raw_slip for part in _slipping(larger.likelihood)]
        return [Grown(larger, len(slipping), new, new[0])]


def _summands(kernel: Kernel | None) -> list[Any]:
    """The parts of a kernel, whose sum it is; a subclass of a sum may be none."""
    if kernel is None:
        return []
    is_sum = type(kernel) is AdditiveKernel and kernel.active_dims is None
    return [*kernel.kernels] if is_sum else [kernel]


def _is_linear(shared: Sequence[Kernel]) -> bool:
    return all(isinstance(part, LinearKernel) for part in shared)


def _evidence(model: SkewGP) -> float:
    return float(model.log_marginal_likelihood("ep").value)


def _rises(model: SkewGP, scale: Parameter) -> bool:
    """Whether the evidence rises with the scale of a new part from nearly none."""
    mll = SkewGPMarginalLogLikelihood(model.likelihood, model).train()
    before = scale.detach().clone()
    scale.data.fill_(NEARLY_NONE)
    value = mll(model(*model.train_inputs), model.train_targets)
    (slope,) = torch.autograd.grad(value, scale)
    scale.data.copy_(before)
    mll.eval()
    return bool(slope > 0)


def _slipping(likelihood: RowLikelihood) -> list[RowLikelihood]:
    """The parts whose answers may be slips."""
    kinds = (OrdinalLikelihood, PreferenceLikelihood, ProbitLikelihood)
    return [part for part in likelihood.modules() if isinstance(part, kinds)]


def _with_stretches(likelihood: RowLikelihood, num_judges: int) -> RowLikelihood:
    """The likelihood with a stretch of cut-points for each of two judges or more, and the prior of numbers' noise."""
    parts = likelihood.likelihoods if isinstance(likelihood, MixedLikelihood) else [likelihood]
    for i, part in enumerate(parts):
        if isinstance(part, OrdinalLikelihood) and num_judges and part.num_grades > 2:
            parts[i] = OrdinalLikelihood(part.num_grades, stretch=torch.ones(num_judges), learn_stretch=True)
        elif isinstance(part, NumericLikelihood):
            parts[i] = NumericLikelihood(noise_prior=LogNormalPrior(*NOISE_PRIOR))
    return parts[0] if len(parts) == 1 else MixedLikelihood(*parts)
