r"""A frozen copy of a model, from which posteriors are computed while the model may change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from linear_operator.operators import to_linear_operator
from torch import Tensor
from torch.nn import Module

from botorch_skewgp.exceptions import ContradictionError
from botorch_skewgp.models.contradictions import check_contradictions
from botorch_skewgp.models.inducing import WhiteRows, white_row_model
from botorch_skewgp.models.inputs import (
    check_digits_of_points,
    check_digits_of_rows,
    check_finite,
    check_hyperparameters,
)
from botorch_skewgp.models.judges import SHARED
from botorch_skewgp.models.latent_prior import LatentPrior
from botorch_skewgp.models.row_model import RowModel
from botorch_skewgp.models.slips import slip_probabilities
from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.truncated.draws import Draws, draw
from botorch_skewgp.truncated.factorization import cholesky_with_relative_jitter
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation, product_of_sites
from botorch_skewgp.truncated.propagation.sites import Sites
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

if TYPE_CHECKING:
    from botorch_skewgp.models.latent_model import LatentModel


@dataclass(frozen=True, eq=False)
class FantasyLevel:
    r"""The points of one round of fantasies, with the terms of their covariance given earlier rounds.

    Args:
        inputs: The points, `batch_shape x n' x d`, after input transforms.
        gains: For each earlier level its covariance with these points times its root, `batch_shape x n' x p`.
        mixture: The mixture with this level on top.
    """

    inputs: Tensor
    gains: tuple[Tensor, ...]
    mixture: RepresenterMixture

    def apply(self, fn: Callable[[Tensor], Tensor]) -> FantasyLevel:
        """A copy with `fn` applied to every tensor, as in `torch.nn.Module._apply`."""
        return FantasyLevel(fn(self.inputs), tuple(fn(gain) for gain in self.gains), self.mixture.apply(fn))


@dataclass(frozen=True, eq=False)
class SampledValues:
    r"""Joint samples of the values at some points, each a draw conditioned on its values there.

    Args:
        inputs: The points, `n' x d`, after input transforms.
        mixture: The samples, over the columns of the model's points followed by those of these points.
    """

    inputs: Tensor
    mixture: RepresenterMixture

    def extend(self, prior: LatentPrior) -> LatentPrior:
        """The prior with the value columns of these points after the others, as in the mixture."""
        before = prior.pseudo_points
        points = self.inputs if before is None else torch.cat([before.to(self.inputs), self.inputs])
        return replace(prior, pseudo_points=points)

    def apply(self, fn: Callable[[Tensor], Tensor]) -> SampledValues:
        """A copy with `fn` applied to every tensor."""
        return SampledValues(fn(self.inputs), self.mixture.apply(fn))


class Snapshot:
    r"""A copy of a model in evaluation mode, with modules of its own, and the draws of its rows.

    A fit in another thread changes the model's parameters and mode, but not the copy. Data are shared, since a model
    replaces them and never writes into them.

    Args:
        model: The model.
    """

    def __init__(self, model: LatentModel) -> None:
        self._sources = modules_below(model)
        frozen = copy(model)
        frozen.__dict__["_modules"] = deepcopy(model._modules)
        frozen._snapshot, frozen._fantasies, frozen._sampled = None, (), None
        frozen.requires_grad_(False)
        frozen.restore_inputs()
        self.model = frozen.eval()
        self._is_checked = False
        self._of_judges: dict[tuple[int, ...], tuple[LatentPrior, RepresenterMixture]] = {}
        self._tensors = tensors_of([self.model, *modules_below(self.model)])

    def is_current(self, model: LatentModel) -> bool:
        r"""Whether a model still has the data, modules and values that the copy has.

        Values are compared, since GPyTorch writes through `.data`, which changes no version.

        Args:
            model: The copied model, or one that shares its modules.
        """
        frozen, modules = self.model, modules_below(model)
        now, then = tensors_of([model, *modules]), self._tensors
        return (
            frozen.datapoints is model.datapoints
            and frozen.observations is model.observations
            and frozen.draw_settings == model.draw_settings
            and frozen.approximation == model.approximation
            and len(modules) == len(self._sources)
            and all(new is old for new, old in zip(modules, self._sources, strict=True))
            and len(now) == len(then)
            and all(new.dtype == old.dtype and torch.equal(new, old) for new, old in zip(now, then, strict=True))
        )

    @cached_property
    def prior(self) -> LatentPrior:
        """The prior of the copy, its columns in double precision."""
        return self.model.latent_prior(self.model.train_inputs[0].double())

    @cached_property
    def _white_rows(self) -> WhiteRows:
        """The rows over the white coordinates of the inducing points' columns."""
        model = self.model
        rows = model._rows(model.forward(model.train_inputs[0]), None, True)
        assert isinstance(rows, WhiteRows)
        return rows

    @cached_property
    def _fitted(self) -> tuple[Draws | Sites, RepresenterMixture]:
        """The draws of the rows, or their sites of expectation propagation, and the mixture over the columns."""
        model = self.model
        with torch.no_grad():
            check_hyperparameters(model)
            X = model.train_inputs[0]
            check_finite(X, "train_X, after input transforms,")
            check_digits_of_points(X)
            row_model = model.row_model(model.forward(X), merge_equal=True)
            check_digits_of_rows(row_model.truncated_normal)
            if model.approximation == "ep" and row_model.intervals.num_rows:
                approximation = expectation_propagation(row_model.truncated_normal)
                approximation.warn_of_competition()
                told: Draws | Sites = approximation.sites
            else:
                told = self._draw(row_model.truncated_normal)
            mixture = _mixture(row_model, told)
            self._check(row_model, mixture, told if isinstance(told, Draws) else None)
            if not mixture.weights.to(X).isfinite().all():
                raise InputDataError(f"Observations are too large for {X.dtype}; scale them, or use double precision.")
            return told, mixture

    def check_contradictions(self) -> None:
        r"""Warn of contradictory rows, once.

        Raises:
            ContradictionError: If a noise-free value is observed as two different numbers.
        """
        if not self._is_checked:
            self._check(self.model.row_model(self.model.forward(self.model.train_inputs[0]), merge_equal=True))

    def _check(
        self, row_model: RowModel, mixture: RepresenterMixture | None = None, draws: Draws | None = None
    ) -> None:
        if not self._is_checked:
            layout = None if self.model.inducing is not None else self.model.latent_prior().layout
            check_contradictions(row_model, layout, mixture, lambda: torch.cat(slip_probabilities(self.model, draws)))
            self._is_checked = True

    def _draw(self, distribution: TruncatedNormal) -> Draws:
        model = self.model
        try:
            return draw(distribution, model.draw_settings)
        except ContradictionError as error:
            if model.skew_prior is None:
                raise
            s = model.skew_prior.latent_dim
            message = f"{error} Rows 0 to {s - 1} are the pseudo-points of the skew prior."
            raise ContradictionError(message) from error

    @property
    def draws(self) -> Draws:
        """The draws of the interval rows, made once.

        Raises:
            UnsupportedError: If the model approximates them by expectation propagation.
        """
        if not isinstance(self._fitted[0], Draws):
            raise UnsupportedError(
                'A model with approximation="ep" has no draws; leave approximation out for the exact posterior.'
            )
        return self._fitted[0]

    @property
    def draws_if_made(self) -> Draws | None:
        """The draws, if they exist."""
        return self.draws if "_fitted" in self.__dict__ and isinstance(self._fitted[0], Draws) else None

    @property
    def mixture(self) -> RepresenterMixture:
        """The representer weights of each draw, made once."""
        return self._fitted[1]

    def fitted_for(self, judge_codes: tuple[int, ...]) -> tuple[LatentPrior, RepresenterMixture]:
        r"""The prior and the mixture over columns for some judges; made once for each set of them.

        Exact models have a column for every pair of a point and its judge. Inducing points represent the shared part,
        and the residuals of a judge's rows are further columns.

        Args:
            judge_codes: The codes of the judges.
        """
        model, codes = self.model, tuple(sorted({code for code in judge_codes if code > SHARED}))
        if not codes or model.inducing is None:
            return self.prior, self.mixture
        if codes not in self._of_judges:
            with torch.no_grad():
                told = self._fitted[0]
                root, rows, residuals = self._white_rows.for_judges(codes)
                mixture = _mixture(white_row_model(root, rows), told)
            self._of_judges[codes] = (replace(self.prior, residuals=residuals), mixture)
        return self._of_judges[codes]

    def posterior_at(
        self,
        X: Tensor,
        judge_codes: Sequence[int],
        num_outputs: int = 1,
        fantasies: Sequence[FantasyLevel] = (),
        sampled: SampledValues | None = None,
    ) -> SkewGPPosterior:
        r"""The posterior of the latent function at points after input transforms.

        Residuals of different judges' utilities given inducing points are independent, as those of their answers.

        Args:
            X: A `batch_shape x q x d` tensor, with the code of the judge as the last input if there are several.
            judge_codes: The codes of all judges of these points.
            num_outputs: The number of outputs.
            fantasies: The levels of fantasies.
            sampled: Joint samples of values, instead of the data.
        """
        check_digits_of_points(X)
        prior, mixture = self.fitted_for(tuple(judge_codes))
        if sampled is not None:
            prior, mixture = sampled.extend(prior), sampled.mixture
        exact = X.double()  # nearly equal points have a covariance in double precision only
        crosses, roots = [prior.cross_covariance(exact)], [mixture.levels[0].root]
        covariance = prior.covariance_at(X)
        if self.model.inducing is not None and len(set(judge_codes)) > 1:
            L = cholesky_with_relative_jitter(prior.columns().lazy_covariance_matrix.to_dense())
            white = torch.linalg.solve_triangular(L, crosses[0][..., : len(L)].mT, upper=False)
            told = (white.mT @ white).to(X)
            covariance = to_linear_operator(torch.where(X[..., -1:] == X[..., -1:].mT, covariance.to_dense(), told))
        for level in fantasies:  # the covariance with their points given earlier levels
            cross = prior.covariance_at(exact, level.inputs.to(exact)).to_dense()
            for earlier, root, gain in zip(crosses, roots, level.gains, strict=True):
                cross = cross - (earlier @ root.to(exact)) @ gain.to(exact).mT
            crosses.append(cross)
            roots.append(level.mixture.root)
            mixture = level.mixture
        return SkewGPPosterior(prior.mean_at(X), crosses, covariance, mixture, num_outputs)

    def joint_with_rows(self, X: Tensor, judge_code: int) -> tuple[TruncatedNormal, Tensor, Tensor, Tensor]:
        r"""The interval rows given the numbers, and the normal distribution of the latent function before truncation.

        Args:
            X: A `q x d` tensor of points after input transforms, in double precision.
            judge_code: The code of the judge.

        Returns:
            The rows, the mean and covariance at the points, and the covariance with the rows.
        """
        rows, prior = self.model._rows(self.prior.columns(), None, False), self.prior
        if isinstance(rows, WhiteRows):
            root, rows, residuals = rows.for_judges([judge_code])
            row_model, prior = white_row_model(root, rows), replace(prior, residuals=residuals)
        else:
            row_model = self.model.row_model(prior.columns())
        cross, covariance = prior.cross_covariance(X), prior.covariance_at(X).to_dense()
        return row_model.truncated_normal, *row_model.joint_given_numbers(prior.mean_at(X), cross, covariance)


def _mixture(row_model: RowModel, told: Draws | Sites) -> RepresenterMixture:
    if isinstance(told, Draws):
        return row_model.representer_mixture(told).in_space_filling_order(row_model.column_covariance)
    return row_model.gaussian_mixture(product_of_sites(row_model.truncated_normal, told))


def modules_below(parent: Module) -> list[Module]:
    """The modules below another one; those of a model are shared by its models of fantasies."""
    found: list[Module] = []
    ahead: list[Module | None] = [*parent._modules.values()]
    while ahead:  # called at every posterior; torch's generators take three times as long
        module = ahead.pop()
        if module is not None:
            found.append(module)
            ahead += module._modules.values()
    return found


def tensors_of(modules: list[Module]) -> list[Tensor]:
    """The parameters and buffers of modules, their own and not those of modules below them."""
    entries = (entry for module in modules for entry in (*module._parameters.values(), *module._buffers.values()))
    return [entry for entry in entries if entry is not None]
