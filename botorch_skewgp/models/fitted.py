r"""The fitted state of a model as a value: what a posterior needs, none of which changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.models.utils.assorted import fantasize
from botorch.posteriors import Posterior
from torch import Tensor

from botorch_skewgp.checks import as_count, as_seed, check_class, check_flags
from botorch_skewgp.exceptions import ContradictionError
from botorch_skewgp.inputs.points import check_digits_of_points, check_finite
from botorch_skewgp.likelihoods import OutcomeScale, RowLikelihood
from botorch_skewgp.models.answers import AnswerLaw, answer, answer_laws
from botorch_skewgp.models.conditioning import condition_mixture, draw_values, open_uniforms
from botorch_skewgp.models.contradictions import check_contradictions
from botorch_skewgp.models.inputs import (
    check_digits_of_rows,
    check_hyperparameters,
    check_output_indices,
)
from botorch_skewgp.models.latent_prior import LatentPrior
from botorch_skewgp.models.panel import SHARED, code_of, judge_of, with_code
from botorch_skewgp.models.prior_model import PriorModel
from botorch_skewgp.models.row_model import RowModel
from botorch_skewgp.models.slips import slip_probabilities
from botorch_skewgp.models.transforms import apply_posterior_transform
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.numeric import mean_known_noise
from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.rows import FantasyRows
from botorch_skewgp.truncated.draws import Draws, draw
from botorch_skewgp.truncated.priors import Sites
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation, product_of_sites
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

NUM_FANTASY_DRAWS = 256  # of rows' values, for a posterior that is a single Gaussian


class DataPosterior:
    """The prior of a model given its data, whose draws are made when they are first asked for.

    Args:
        model: A copy of the model in evaluation mode, with modules of its own that nobody changes.
    """

    def __init__(self, model: PriorModel) -> None:
        self.model = model
        self._is_checked = False
        self._of_judges: dict[tuple[int, ...], tuple[LatentPrior, RepresenterMixture]] = {}

    @cached_property
    def prior(self) -> LatentPrior:
        """The prior, its columns in double precision."""
        with torch.inference_mode(False):
            return self.model.latent_prior(self.model.train_inputs[0].double())

    @cached_property
    def _conditioned(self) -> tuple[Draws | Sites, RepresenterMixture]:
        """The draws of the rows, or their sites of expectation propagation, and the mixture over the columns."""
        model = self.model
        with torch.inference_mode(False), torch.no_grad():
            check_hyperparameters(model)
            X = model.train_inputs[0]
            check_finite(X, "train_X, after input transforms,")
            check_digits_of_points(X)
            row_model = self._row_model()
            check_digits_of_rows(row_model.truncated_normal)
            row_posterior = self._posterior_of_rows(row_model.truncated_normal)
            mixture = _mixture(row_model, row_posterior)
            draws = row_posterior if isinstance(row_posterior, Draws) else None
            self._check_contradictions(row_model, mixture, draws)
            if not mixture.weights.to(X).isfinite().all():
                raise InputDataError(f"Observations are too large for {X.dtype}; scale them, or use double precision.")
            return row_posterior, mixture

    def _row_model(self) -> RowModel:
        """The rows of the data under the prior; equal ones may be merged."""
        return self.model.row_model(
            self.model.forward(self.model.train_inputs[0]), self.model.row_plan(merge_equal=True)
        )

    def _posterior_of_rows(self, rows: TruncatedNormal) -> Draws | Sites:
        model = self.model
        if model.approximation == "ep" and rows.num_rows:
            approximation = expectation_propagation(rows)
            approximation.warn_of_competition()
            return approximation.sites
        try:
            return draw(rows, model.draw_settings)
        except ContradictionError as error:
            if model.skew_prior is None:
                raise
            last = model.skew_prior.latent_dim - 1
            raise ContradictionError(f"{error} Rows 0 to {last} are the pseudo-points of the skew prior.") from error

    def check_contradictions(self) -> None:
        """Warn of contradictory rows, once."""
        if not self._is_checked:
            self._check_contradictions(self._row_model())

    def _check_contradictions(
        self, row_model: RowModel, mixture: RepresenterMixture | None = None, draws: Draws | None = None
    ) -> None:
        model = self.model
        layout = None if model.inducing is not None else model.latent_prior().layout
        check_contradictions(row_model, layout, mixture, lambda: torch.cat(slip_probabilities(model, draws)))
        self._is_checked = True

    @property
    def draws(self) -> Draws:
        """The draws of the interval rows. Raises `UnsupportedError`."""
        if not isinstance(self._conditioned[0], Draws):
            raise UnsupportedError(
                'A model with approximation="ep" has no draws; leave approximation out for the exact posterior.'
            )
        return self._conditioned[0]

    def for_judges(self, codes: Sequence[int]) -> tuple[LatentPrior, RepresenterMixture]:
        """Prior and mixture over columns; the residuals of judges' rows given inducing points are columns too."""
        model, judges = self.model, tuple(sorted({code for code in codes if code > SHARED}))
        if not judges or model.inducing is None:
            return self.prior, self._conditioned[1]
        if judges not in self._of_judges:
            with torch.inference_mode(False), torch.no_grad():
                white_rows = model.white_rows(model.forward(model.train_inputs[0]), model.row_plan(merge_equal=True))
                row_model, residuals = white_rows.for_judges(judges)
                mixture = _mixture(row_model, self._conditioned[0])
            self._of_judges[judges] = replace(self.prior, residuals=residuals), mixture
        return self._of_judges[judges]

    def single_rows(self, code: int) -> tuple[LatentPrior, RowModel]:
        """The prior over columns for a judge, and the rows over these columns, none of them merged."""
        model, columns = self.model, self.prior.columns()
        if model.inducing is None:
            return self.prior, model.row_model(columns)
        row_model, residuals = model.white_rows(columns).for_judges([code])
        return replace(self.prior, residuals=residuals), row_model

    def slips(self) -> list[Tensor]:
        """For each observation the probability that each of its answers is a slip."""
        return slip_probabilities(self.model, None if self.model.approximation == "ep" else self.draws)

    def apply(self, fn: Callable[[Tensor], Tensor]) -> DataPosterior:
        """The same draws and mixture in another dtype or on another device, as of `torch.nn.Module._apply`."""
        row_posterior, mixture = self._conditioned
        new = DataPosterior(deepcopy(self.model)._apply(fn))
        new.__dict__["_conditioned"] = row_posterior, mixture.apply(fn)
        new._is_checked = True
        return new


def _mixture(row_model: RowModel, row_posterior: Draws | Sites) -> RepresenterMixture:
    if isinstance(row_posterior, Draws):
        return row_model.representer_mixture(row_posterior).in_space_filling_order(row_model.column_covariance)
    return row_model.gaussian_mixture(product_of_sites(row_model.truncated_normal, row_posterior))


@dataclass(frozen=True, eq=False)
class FantasyLevel:
    """The points of one round of fantasies.

    Args:
        inputs: The points, `batch_shape x n' x d`, after input transforms.
        gains: The covariance of each earlier level with these points times its root, `... x n' x p`.
        mixture: The mixture with this level on top.
    """

    inputs: Tensor
    gains: tuple[Tensor, ...]
    mixture: RepresenterMixture

    def apply(self, fn: Callable[[Tensor], Tensor]) -> FantasyLevel:
        """A copy with `fn` applied to every tensor, as in `torch.nn.Module._apply`."""
        return FantasyLevel(fn(self.inputs), tuple(fn(gain) for gain in self.gains), self.mixture.apply(fn))


@dataclass(frozen=True, eq=False)
class Fitted:
    """The fitted state of a model: `model.posterior(X)` is `model.fitted().posterior(X)`.

    Arguments and errors of methods are those of the model's.

    Args:
        data: The prior given the data, with the draws of rows.
        judge: The code of the judge whose utility this is, see `botorch_skewgp.models.panel`.
        levels: Values that the draws also know, of one round of fantasies after the other.
    """

    data: DataPosterior
    judge: int = SHARED
    levels: tuple[FantasyLevel, ...] = ()

    @property
    def model(self) -> PriorModel:
        """The frozen copy of the model, without fantasies."""
        return self.data.model

    @property
    def batch_shape(self) -> torch.Size:
        """The batch shape of the fantasies; empty without fantasies."""
        return self.levels[-1].mixture.weights.shape[:-2] if self.levels else torch.Size()

    @property
    def scale(self) -> OutcomeScale:
        """The location and scale of outcomes."""
        return self.model.outcome_scale

    @cached_property
    def likelihood(self) -> RowLikelihood:
        """The likelihood of new answers of the judge, and of new numbers with the mean of known variances."""
        likelihood = self.model.likelihood.for_judge(judge_of(self.judge))
        noise = mean_known_noise(self.model.observations)
        return likelihood if noise is None else likelihood.with_noise_of_numbers(noise / self.scale.scale**2)

    def apply(self, fn: Callable[[Tensor], Tensor]) -> Fitted:
        """The same value in another dtype or on another device, as in `torch.nn.Module._apply`."""
        return replace(self, data=self.data.apply(fn), levels=tuple(level.apply(fn) for level in self.levels))

    # Posteriors

    def inputs_at(self, X: Tensor) -> Tensor:
        """Points after input transforms, `batch_shape x q x d`, with the code of the judge as the last input if there
        are judges.
        """
        X = self.model.transform_inputs(X)
        return X if self.model.judge_code is None else with_code(X, self.judge)

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """The posterior in units of the outcome, see `SkewGP.posterior`."""
        X, num_outputs = self.model.checked_query(X), self.model.num_outputs
        if output_indices is not None:
            output_indices = check_output_indices(output_indices, num_outputs)
        posterior = self.posterior_at(self.inputs_at(X))
        if output_indices is not None and num_outputs > 1:
            posterior = posterior.select_outputs(output_indices)
        if not isinstance(observation_noise, bool):
            check_class(observation_noise, "observation_noise", Tensor)
            posterior = posterior.add_noise(observation_noise / self.scale.scale**2)
        elif observation_noise:
            posterior = posterior.add_noise(self.likelihood.latent_noise(X))
        if self.scale != OutcomeScale():
            posterior = posterior.scalarize(X.new_tensor([self.scale.scale]), self.scale.location)
        return apply_posterior_transform(posterior_transform, posterior, X)

    def latent_posterior(
        self, X: Tensor, judges: Sequence[Any] | None = None, crossed: bool = False
    ) -> SkewGPPosterior:
        """The posterior in units of the latent function, see `SkewGP.latent_posterior`."""
        X = self.model.checked_query(X)
        inputs = self.inputs_at(X)
        if judges is None:
            return self.posterior_at(inputs)
        if self.model.judge_code is None:
            raise UnsupportedError(
                "Joint utilities of judges need a model with judges; name them with judge= in observations."
            )
        if not isinstance(judges, Sequence | Tensor):
            raise InputDataError(f"judges must name one for each of the {X.shape[-2]} points; got {judges!r}.")
        of_batch = X.ndim == 3 and not crossed and all(isinstance(row, list) for row in judges)
        rows: Sequence[Any] = judges if of_batch else [judges]
        if not crossed and any(len(row) != X.shape[-2] for row in rows):
            raise InputDataError(f"judges must name one for each of the {X.shape[-2]} points; got {judges!r}.")
        if self.model.num_outputs > 1 or self.levels:
            raise UnsupportedError(
                "Joint utilities of judges need a model of data with one latent function, without fantasies."
            )
        named = [[self.judge if judge is None else code_of(judge, self.model.judges) for judge in row] for row in rows]
        codes = [code for row in named for code in row]
        X = inputs[..., :-1]
        if crossed:
            inputs = torch.stack([with_code(X, code) for code in codes], dim=-2).flatten(-3, -2)
            return self._posterior_of(inputs, codes, len(codes))
        column = inputs.new_tensor(named if of_batch else codes).unsqueeze(-1)
        return self._posterior_of(torch.cat([X, column.expand(*X.shape[:-1], 1)], dim=-1), codes)

    def posterior_at(self, X: Tensor) -> SkewGPPosterior:
        """The posterior at transformed points, with the judge's code or without. Raises
        `BotorchTensorDimensionError`.
        """
        model = self.model
        dim, has_judges = model.train_inputs[0].shape[-1], model.judge_code is not None
        if has_judges and X.shape[-1] == dim:
            X = with_code(X, self.judge)
        if X.shape[-1] != dim + has_judges:
            raise BotorchTensorDimensionError(
                f"After input transforms X has {X.shape[-1]} columns, and train_X {dim}; transform both alike, or give "
                "train_X the columns that a transform appends to queries alone."
            )
        return self._posterior_of(X, [self.judge], model.num_outputs)

    def _posterior_of(self, X: Tensor, codes: Sequence[int], num_outputs: int = 1) -> SkewGPPosterior:
        """The posterior at transformed points of some judges, `batch_shape x q x d`."""
        check_digits_of_points(X)
        prior, mixture = self.data.for_judges(codes)
        if torch.is_inference_mode_enabled():  # whose tensors must not be kept beside the mixture
            prior, mixture = replace(prior), replace(mixture)
        exact = X.double()  # nearly equal points have a covariance in double precision only
        crosses, roots = [prior.cross_covariance(exact)], [mixture.levels[0].root]
        for level in self.levels:  # the covariance with their points given earlier levels
            cross = prior.covariance_at(exact, level.inputs.to(exact)).to_dense()
            for earlier, root, gain in zip(crosses, roots, level.gains, strict=True):
                cross = cross - (earlier @ root.to(exact)) @ gain.to(exact).mT
            crosses.append(cross)
            roots.append(level.mixture.root)
            mixture = level.mixture
        return SkewGPPosterior(prior.mean_at(X), crosses, prior.covariance_at(X), mixture, num_outputs)

    def posterior_of_mixture(self, X: Tensor, mixture: RepresenterMixture) -> SkewGPPosterior:
        """The posterior in units of the latent function, from another mixture over the columns of the data."""
        prior, X = self.data.prior, self.inputs_at(self.model.checked_query(X))
        cross, covariance = prior.cross_covariance(X.double()), prior.covariance_at(X)
        return SkewGPPosterior(prior.mean_at(X), [cross], covariance, mixture, self.model.num_outputs)

    def predictive(self, X: Tensor, available: Tensor | None = None, none: bool = False) -> Any:
        """The distribution of new observations, see `SkewGP.predictive`."""
        X = self.model.checked_query(X)
        posterior = self.posterior_at(self.inputs_at(X))
        check_flags(none=none)
        choices: dict[str, Any] = {}
        if available is not None:
            choices["available"] = available
        if none:
            choices["none"] = True
        if choices and not self.likelihood.predicts_choices:
            raise UnsupportedError(
                f"{next(iter(choices))} is for choices; with several kinds use the likelihood of choices: "
                "model.likelihood.for_kind(Choice)(model.latent_posterior(X), scale=model.outcome_scale, ...)."
            )
        judge, reliability = judge_of(self.judge), self.model.judge_reliability
        return answer(self.likelihood, reliability, judge, posterior, scale=self.scale, **choices)

    def answer_laws(self, kind: type[Observation]) -> list[AnswerLaw]:
        """The laws that new answers of a kind, of the judge, are an average of."""
        return answer_laws(self.likelihood.for_kind(kind), self.model.judge_reliability, judge_of(self.judge))

    # Conditioning

    def condition_on_rows(self, X: Tensor, rows: FantasyRows) -> Fitted:
        """Given further rows at points, `batch_shape x n' x d`, in closed form. Raises `UnsupportedError`."""
        if self.model.num_outputs > 1:
            raise UnsupportedError("Fantasies of a model with several latent functions are not supported.")
        given = [X, rows.weight, rows.lower, rows.upper, rows.noise_covariance]
        given += [level.mixture.weights for level in self.levels]
        if torch.is_grad_enabled() and not any(part.requires_grad for part in given):
            with torch.no_grad():  # slopes have a graph of their own, which is not to be kept
                return self.condition_on_rows(X, rows)
        with fantasize():
            posterior = self.latent_posterior(X)
            inputs = self.inputs_at(self.model.checked_query(X))
        if posterior.mixture.num_draws == 1 and not bool((rows.lower == rows.upper).all()):
            posterior = posterior.with_draws_repeated(NUM_FANTASY_DRAWS)  # a row of one component would have one value
        # rounds must be independent given the draws
        generator = torch.Generator().manual_seed(self.model.draw_settings.seed + len(self.levels))
        num_uniforms = rows.weight.shape[-2] * (1 if rows.slip is None else 2)
        uniforms = open_uniforms((num_uniforms, posterior.mixture.num_draws), inputs, generator)
        mixture = condition_mixture(posterior, rows, uniforms)
        level = FantasyLevel(inputs, tuple(posterior.gains), mixture)
        return replace(self, levels=(*self.levels, level))

    def condition_on_draws(self, X: Tensor, samples_per_draw: int = 1, seed: int = 0) -> tuple[Fitted, Tensor]:
        """Given values drawn from the posterior, and these, see `SkewGP.condition_on_draws`."""
        if self.model.num_outputs != 1:
            raise UnsupportedError(
                f"condition_on_draws needs a model with one output; this one has {self.model.num_outputs}."
            )
        if self.batch_shape:
            raise UnsupportedError("condition_on_draws needs a model without a batch of fantasies.")
        X = self.model.checked_query(X)
        samples_per_draw, seed = as_count(samples_per_draw, "samples_per_draw", least=1), as_seed(seed)
        if X.shape[-2] == 0:
            raise InputDataError(f"X must hold at least one point; got shape {tuple(X.shape)}.")
        posterior = self.latent_posterior(X)
        mixture, values = draw_values(posterior, samples_per_draw, seed)
        level = FantasyLevel(self.inputs_at(X), tuple(posterior.gains), mixture)
        return replace(self, levels=(*self.levels, level)), self.scale.unstandardize(values)
