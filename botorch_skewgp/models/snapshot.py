r"""A frozen copy of a model, from which posteriors are computed while the model may change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from torch import Tensor

from botorch_skewgp.exceptions import ContradictionError
from botorch_skewgp.inputs.points import check_digits_of_points, check_finite
from botorch_skewgp.models.contradictions import check_contradictions
from botorch_skewgp.models.inducing import WhiteRows
from botorch_skewgp.models.inputs import check_digits_of_rows, check_hyperparameters
from botorch_skewgp.models.latent_prior import LatentPrior
from botorch_skewgp.models.panel import SHARED, with_code
from botorch_skewgp.models.prior_model import PriorModel
from botorch_skewgp.models.row_model import RowModel
from botorch_skewgp.models.state import ModelState
from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.truncated.draws import Draws, draw, noiseless_given_rows
from botorch_skewgp.truncated.priors import Sites
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation, product_of_sites
from botorch_skewgp.truncated.step_factor import StepFactor
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal
from botorch_skewgp.truncated.univariate import hermite

NUM_NODES = 64  # of averages over a row's cavity


@dataclass(frozen=True, eq=False)
class FantasyLevel:
    """The points of one round of fantasies, with the terms of their covariance given earlier rounds."""

    inputs: Tensor  # the points, `batch_shape x n' x d`, after input transforms
    gains: tuple[Tensor, ...]  # the covariance of each earlier level with these points times its root, `... x n' x p`
    mixture: RepresenterMixture  # with this level on top

    def apply(self, fn: Callable[[Tensor], Tensor]) -> FantasyLevel:
        """A copy with `fn` applied to every tensor, as in `torch.nn.Module._apply`."""
        return FantasyLevel(fn(self.inputs), tuple(fn(gain) for gain in self.gains), self.mixture.apply(fn))


class Snapshot:
    """A model in evaluation mode that does not change, the state of the model it is a copy of, and its rows' draws."""

    def __init__(self, model: PriorModel, state: ModelState) -> None:
        self.model, self.state = model, state
        self._is_checked = False
        self._of_judges: dict[tuple[int, ...], tuple[LatentPrior, RepresenterMixture]] = {}

    def inputs_at(self, X: Tensor, judge_code: int | None) -> Tensor:
        """Points after input transforms, with the code of the judge as the last input. `X` is `batch_shape x q x d`."""
        X = self.model.transform_inputs(X)
        return X if judge_code is None else with_code(X, judge_code)

    @cached_property
    def prior(self) -> LatentPrior:
        """The prior of the copy, its columns in double precision."""
        return self.model.latent_prior(self.model.train_inputs[0].double())

    @cached_property
    def _white_rows(self) -> WhiteRows:
        """The rows over the white coordinates of the inducing points' columns."""
        return self.model.white_rows(self.model.forward(self.model.train_inputs[0]), merge_equal=True)

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
                row_posterior: Draws | Sites = approximation.sites
            else:
                row_posterior = self._draw(row_model.truncated_normal)
            mixture = _mixture(row_model, row_posterior)
            self.check_contradictions(row_model, mixture, row_posterior if isinstance(row_posterior, Draws) else None)
            if not mixture.weights.to(X).isfinite().all():
                raise InputDataError(f"Observations are too large for {X.dtype}; scale them, or use double precision.")
            return row_posterior, mixture

    def check_contradictions(
        self, row_model: RowModel | None = None, mixture: RepresenterMixture | None = None, draws: Draws | None = None
    ) -> None:
        """Warn of contradictory rows, once."""
        if self._is_checked:
            return
        model = self.model
        if row_model is None:
            row_model = model.row_model(model.forward(model.train_inputs[0]), merge_equal=True)
        layout = None if model.inducing is not None else model.latent_prior().layout
        check_contradictions(row_model, layout, mixture, lambda: torch.cat(self._slips(draws)))
        self._is_checked = True

    def _draw(self, distribution: TruncatedNormal) -> Draws:
        model = self.model
        try:
            return draw(distribution, model.draw_settings)
        except ContradictionError as error:
            if model.skew_prior is None:
                raise
            last = model.skew_prior.latent_dim - 1
            raise ContradictionError(f"{error} Rows 0 to {last} are the pseudo-points of the skew prior.") from error

    @property
    def draws(self) -> Draws:
        """The draws of the interval rows, made once. Raises `UnsupportedError`."""
        if not isinstance(self._fitted[0], Draws):
            raise UnsupportedError(
                'A model with approximation="ep" has no draws; leave approximation out for the exact posterior.'
            )
        return self._fitted[0]

    def fitted_for(self, judge_codes: tuple[int, ...]) -> tuple[LatentPrior, RepresenterMixture]:
        """Prior and mixture over columns; the residuals of judges' rows given inducing points are columns too."""
        model, codes = self.model, tuple(sorted({code for code in judge_codes if code > SHARED}))
        if not codes or model.inducing is None:
            return self.prior, self._fitted[1]
        if codes not in self._of_judges:
            with torch.no_grad():
                row_model, residuals = self._white_rows.for_judges(codes)
                mixture = _mixture(row_model, self._fitted[0])
            self._of_judges[codes] = (replace(self.prior, residuals=residuals), mixture)
        return self._of_judges[codes]

    def posterior_at(
        self, X: Tensor, judge_codes: Sequence[int], num_outputs: int = 1, fantasies: Sequence[FantasyLevel] = ()
    ) -> SkewGPPosterior:
        """The posterior at transformed points, `batch_shape x q x d`."""
        check_digits_of_points(X)
        prior, mixture = self.fitted_for(tuple(judge_codes))
        exact = X.double()  # nearly equal points have a covariance in double precision only
        crosses, roots = [prior.cross_covariance(exact)], [mixture.levels[0].root]
        covariance = prior.covariance_at(X)
        for level in fantasies:  # the covariance with their points given earlier levels
            cross = prior.covariance_at(exact, level.inputs.to(exact)).to_dense()
            for earlier, root, gain in zip(crosses, roots, level.gains, strict=True):
                cross = cross - (earlier @ root.to(exact)) @ gain.to(exact).mT
            crosses.append(cross)
            roots.append(level.mixture.root)
            mixture = level.mixture
        return SkewGPPosterior(prior.mean_at(X), crosses, covariance, mixture, num_outputs)

    def rows_for(self, judge_codes: Sequence[int]) -> tuple[LatentPrior, RowModel]:
        """The prior over columns for some judges, and the rows over these columns, none of them merged."""
        model, columns = self.model, self.prior.columns()
        if model.inducing is None:
            return self.prior, model.row_model(columns)
        row_model, residuals = model.white_rows(columns).for_judges(judge_codes)
        return replace(self.prior, residuals=residuals), row_model

    def slip_probabilities(self) -> list[Tensor]:
        """For each observation the posterior probability that each of its answers is a slip."""
        return self._slips(None if self.model.approximation == "ep" else self.draws)

    @torch.no_grad()
    def _slips(self, draws: Draws | None) -> list[Tensor]:
        model = self.model
        prior, scale = model.forward(model.train_inputs[0]), model.outcome_scale
        row_model = model.row_model(prior)
        blocks = [(entry, model.likelihood.rows(entry, row_model.mean, scale)) for entry in model.observations]
        distribution = row_model.truncated_normal
        slipped = row_model.rows.noise.new_zeros(row_model.rows.num_rows)
        if distribution.heights is not None:
            merged = None
            if draws is not None and draws.rows.shape[-1] != distribution.num_rows:
                merged = model.row_model(prior, merge_equal=True).truncated_normal
            slipped[~row_model.rows.is_equality] = _outside(distribution, draws, merged)
        first = row_model.rows.num_rows - sum(block.num_rows for _, block in blocks)  # after the rows of a skew prior
        found = []
        for entry, block in blocks:
            probability = slipped[first : first + block.num_rows]
            first += block.num_rows
            of_answers = probability.new_zeros(entry.num_answers)
            if block.heights is not None:
                of_kind = model.likelihood.for_kind(type(entry))
                probability = probability * of_kind.share_of_slips(entry, block)
                of_answers = of_answers.index_copy(0, of_kind.answer_of_rows(block), probability)
            found.append(of_answers)
        return found


def _mixture(row_model: RowModel, row_posterior: Draws | Sites) -> RepresenterMixture:
    if isinstance(row_posterior, Draws):
        return row_model.representer_mixture(row_posterior).in_space_filling_order(row_model.column_covariance)
    return row_model.gaussian_mixture(product_of_sites(row_model.truncated_normal, row_posterior))


def _outside(distribution: TruncatedNormal, draws: Draws | None, merged: TruncatedNormal | None) -> Tensor:
    """The probability that a row's answer is a slip or a guess, the same for all rows of an answer."""
    heights = distribution.heights
    assert heights is not None
    # of one answer, whatever its weight
    factor = StepFactor(distribution.lower, distribution.upper, distribution.noise, heights)
    if draws is None:
        approximation = expectation_propagation(distribution)
        approximation.warn_of_competition()
        mean, variance = approximation.cavity
        slips = 1 - factor.attention(mean, variance)
        if distribution.count is None or distribution.copies is None:
            return slips
        # of one of the factors to a power, under its cavity times that power
        nodes, log_weights = hermite(slips, NUM_NODES)
        h = mean + variance.sqrt() * nodes.unsqueeze(-1)
        log_powers = distribution.count / distribution.copies * factor.log_likelihood(h)
        weights = (log_weights.unsqueeze(-1) + log_powers).softmax(-2)
        weighted = (weights * (1 - factor.attention(h, torch.zeros_like(h)))).sum(-2)
        return torch.where(distribution.count == distribution.copies, slips, weighted)
    if merged is None and distribution.count is not None:
        merged = distribution
    if merged is not None:
        generator = torch.Generator(device=distribution.mean.device).manual_seed(0)
        h = noiseless_given_rows(merged, draws.rows, generator, single=distribution)
        return (1 - factor.attention(h, torch.zeros_like(h))).mean(-2)
    # given all other rows, an answer is attentive if all its rows are inside their bounds
    mean, scale = distribution.conditionals(draws.rows.to(distribution.mean))
    log_inside = factor.log_inside(mean, scale.square() - factor.noise)
    beyond = draws.rows != torch.maximum(torch.minimum(draws.rows, factor.upper), factor.lower)
    others = factor.heights.total(beyond.to(log_inside)) - beyond.to(log_inside)
    log_odds = factor.heights.log_gain + log_inside - factor.heights.log_outside
    slips = torch.where(others > 0, 1.0, torch.sigmoid(-log_odds)).mean(-2)
    return heights.total(slips) / heights.size
