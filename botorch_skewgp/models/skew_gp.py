r"""The skew Gaussian process as a BoTorch model.

.. [Benavoli2020skew] Benavoli, Azzimonti, Piga. Skew Gaussian processes for classification. Machine Learning 109, 2020.
.. [Benavoli2021unified] Benavoli, Azzimonti, Piga. Machine Learning 110, 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, Self, overload

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import FantasizeMixin
from botorch.models.utils.assorted import fantasize
from botorch.posteriors import Posterior
from botorch.sampling.base import MCSampler
from botorch.utils.datasets import SupervisedDataset
from gpytorch.distributions import MultivariateNormal
from torch import Tensor

from botorch_skewgp.checks import check_class
from botorch_skewgp.inputs.points import check_train_X
from botorch_skewgp.likelihoods import RowLikelihood
from botorch_skewgp.models.committee import Committee
from botorch_skewgp.models.few_answers import warn_of_sure_labels
from botorch_skewgp.models.fitted import DataPosterior, Fitted
from botorch_skewgp.models.inputs import (
    as_observations,
    as_sequence,
    check_batch,
    check_observations,
    check_output_indices,
    from_dataset,
    moved,
    without_gradients,
)
from botorch_skewgp.models.panel import NEW, SHARED, code_of, judges_of
from botorch_skewgp.models.prior_model import PriorModel
from botorch_skewgp.models.row_model import EvidenceMethod, log_normalizer
from botorch_skewgp.models.state import ModelState
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.numeric import mean_known_noise
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.rows import FantasyRows
from botorch_skewgp.truncated.draws import Draws
from botorch_skewgp.truncated.evidence import LogNormalizer


class SkewGP(PriorModel, FantasizeMixin):
    r"""A Gaussian process with the exact, skewed posterior for labels, comparisons and other observations.

    Each observation becomes rows: linear functionals of the latent function plus Gaussian noise, observed as numbers or
    in intervals. Their truncated normal is sampled once per fit; given its draws the latent function is Gaussian in
    closed form ([Benavoli2021unified]_, Theorems 3.1-3.3).

    In training mode a call returns the prior, in evaluation mode the posterior, and `train_inputs` are transformed. The
    methods use `fitted()` in either mode, so that one thread may ask for posteriors while another fits.

    Example:
        >>> train_X = torch.rand(10, 2, dtype=torch.double)
        >>> pairs = torch.tensor([[0, 1], [2, 3], [4, 1]])  # winner first
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> mll = SkewGPMarginalLogLikelihood(model.likelihood, model)
        >>> fit_gpytorch_mll(mll)
        >>> posterior = model.posterior(torch.rand(5, 2, dtype=torch.double))

    Args:
        train_X: An `n x d` tensor of all points that observations refer to.
        observations: One observation object or a sequence of them; `None` for the prior.
        likelihood: Holds noise and cut-points and turns observations into rows; by default that of the
            observations' kinds. Kinds that a given one does not take have their defaults. The model has a copy,
            `model.likelihood`, which shares the parameters of the given one if they have `train_X`'s dtype and device:
            a fit changes both. Parameters whose defaults depend on the data and were not given, such as a noise that
            is learned beside numbers, are the copy's own: read these from `model.likelihood`.
        covar_module: The kernel; by default that of `default_covar_module`, for inputs in the unit cube and
            standardised numbers. As BoTorch's models, it warns of other data unless there is a transform. The kernel
            and the mean become parts of the model: moved to `train_X`'s dtype and device, and fitted.
        mean_module: The mean; by default a constant, integrated out without numbers, see `default_mean_module`.
        skew_prior: The skewness of the prior; a Gaussian prior if `None`.
        input_transform: A BoTorch input transform.
        outcome_transform: `Standardize(m=1)`, to standardise numbers, with known variances, censoring bounds,
            thresholds and given cut-points; labels and comparisons stay the same. Posteriors are in units of the
            outcome. Without numbers it has no effect.
        draw_settings: The settings of posterior draws.
        inducing_points: Points that replace the training points, for a cost of `O(n M^2)`: an `M x d` tensor in the
            units of `train_X`, or a number of training points to choose, see `choose_inducing_points`.
        learn_inducing_points: Whether the inducing points are fitted with the hyperparameters.
        judge_covar_module: The kernel of each judge's own part, for answers of two judges or more; by default
            linear tastes plus a smooth part, see `default_judge_covar_module`.
        approximation: `"ep"` for the Gaussian posterior of expectation propagation, in milliseconds, without draws.
        learn_judge_reliability: Whether every judge has a reliability, see
            `botorch_skewgp.kernels.judges.Reliability`: for panels in which one may answer at random. Fit with
            `fit_skew_gp`, which learns how much judges differ: by other fits many with few answers each overfit.

    Raises:
        InputDataError: If `train_X` is not a finite `n x d` tensor of single or double precision, observations
            refer to rows that it does not have, the likelihood does not take them or has a parameter for each judge
            and no answer names one, an argument is of another class, or inducing points have another dimension,
            repeat each other, or are more than the training points.
        UnsupportedError: If the outcome transform is not `Standardize(m=1)`, there is a skew prior for several
            latent functions, or reliabilities for numbers.
    """

    _supports_cache_root = False
    _supports_batched_models = False

    @classmethod
    def construct_inputs(cls, training_data: SupervisedDataset) -> dict[str, Any]:
        r"""The constructor's arguments for a BoTorch dataset of numbers or rankings, whose equal ranks are ties; raises
        `UnsupportedError` if the dataset has tasks or several outcomes.
        """
        train_X, observations = from_dataset(training_data)
        return {"train_X": train_X, "observations": observations}

    _cached: tuple[ModelState, DataPosterior] | None = None  # the last posterior given the data, and of which state
    _held: Fitted | None = None  # of a model of fantasies, which it keeps

    # The fitted state

    @torch.inference_mode(False)
    def fitted(self) -> Fitted:
        r"""The state that posteriors depend on, as a value that later changes of the model leave as it is.

        It is that of the present parameters and data, and is made anew after these change. Fantasies, and models of
        `frozen` and `condition_on_draws`, keep the one that they were made with.
        """
        if self._held is not None:
            return self._held
        settings = self._points, self._observations, self._outcome_scale, self.draw_settings, self.approximation
        cached = self._cached
        if cached is None or not cached[0].is_of(self, *settings):
            model = copy(self)  # with modules of its own; data, which a model never writes into, are shared
            model.__dict__["_modules"] = deepcopy(self._modules)
            model._cached = None
            model.requires_grad_(False)
            model.restore_inputs()
            self._cached = cached = ModelState.of(self, *settings), DataPosterior(model.eval())
        return Fitted(cached[1], self._judge)

    def frozen(self) -> Self:
        """A model that keeps the present posterior, whatever happens to this one; searches need not look for changes.

        It shares the modules of this one, whose later changes do not matter to it.
        """
        return self._holding(self.fitted())

    def _holding(self, fitted: Fitted) -> Self:
        """A model that keeps a fitted state."""
        new = copy(self)
        new.__dict__["_modules"] = copy(self._modules)
        new._held, new._cached = fitted, None
        return new

    def _clear_cache(self) -> None:
        self._cached = None

    def _check_own_data(self, name: str) -> None:
        """Raise `UnsupportedError` for a model that keeps a fitted state."""
        if self._held is not None:
            raise UnsupportedError(
                f"{name} would not change this model, which keeps the posterior that it was made with, as models of "
                "fantasies do; use the model that it was made from."
            )

    def set_train_data(
        self,
        inputs: Tensor | tuple[Tensor] | None = None,
        targets: Observation | Sequence[Observation] | None = None,
        strict: bool = True,
    ) -> None:
        r"""Replace points, `n x d`, observations or both, without refitting.

        Raises:
            RuntimeError: If `strict` and new points differ from the old ones in shape, dtype or device.
            InputDataError: If points are not a tensor or have another number of columns, observations do not fit them,
                or the likelihood has a parameter for each judge and no answer names one.
            UnsupportedError: If points require gradients, or for models of fantasies.
        """
        self._check_own_data("set_train_data")
        old = self._points
        X = inputs[0] if isinstance(inputs, tuple) and len(inputs) == 1 else inputs
        X = old if X is None else X
        check_class(X, "inputs", Tensor)
        if strict and (X.shape, X.dtype, X.device) != (old.shape, old.dtype, old.device):
            raise RuntimeError(
                f"New points must have shape {tuple(old.shape)}, dtype {old.dtype} and device {old.device}; got "
                f"{tuple(X.shape)}, {X.dtype}, {X.device}. Pass strict=False to allow others."
            )
        check_train_X(X, warn=False)
        if X.shape[-1] != old.shape[-1]:
            raise InputDataError(f"New points must have {old.shape[-1]} columns like the old ones; got {X.shape[-1]}.")
        X = without_gradients(X, "inputs")
        observations = self._observations if targets is None else as_sequence(targets)
        check_observations(observations, X)
        new = moved(observations, X)
        self._set_data(X, new)
        self.restore_inputs()
        if not self.training:
            self._set_transformed_inputs()

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """As of any module; raises `UnsupportedError` for models of fantasies."""
        self._check_own_data("load_state_dict")
        return super().load_state_dict(*args, **kwargs)

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Self:
        if self._held is not None:
            if fn(self._points) is self._points:
                return self
            self.__dict__["_modules"] = deepcopy(self._modules)  # others use those that were shared
            self._held = self._held.apply(fn)
        return super()._apply(fn, *args, **kwargs)

    @property
    def batch_shape(self) -> torch.Size:
        """The batch shape of the fantasies; empty without fantasies."""
        return torch.Size() if self._held is None else self._held.batch_shape

    @property
    def answering_likelihood(self) -> RowLikelihood:
        """The likelihood of new answers of the model's judge, and of new numbers with the mean of known variances."""
        return self.fitted().likelihood

    @property
    def draws(self) -> Draws:
        """The draws of the interval rows of the posterior, with their diagnostics; made on first use."""
        return self.fitted().data.draws

    # Posteriors

    def __call__(self, X: Tensor, *args: Any, **kwargs: Any) -> MultivariateNormal | SkewGPPosterior:
        r"""The prior in training mode; the posterior at (already transformed) inputs in evaluation mode."""
        if self.training:
            return super().__call__(X, *args, **kwargs)
        return self.fitted().posterior_at(X)

    def posterior(  # type: ignore[override]
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
        judge: int | str | Sequence[int | str] | None = None,
    ) -> Posterior:
        r"""The posterior of the latent function, a `SkewGPPosterior`, or what a transform makes of it.

        Args:
            X: A `batch_shape x q x d` tensor.
            output_indices: The outputs wanted; all if `None`.
            observation_noise: Whether to add the likelihood's noise (the mean of known variances where all numbers have
                one, as in BoTorch), or its variances, in squared units of the outcome, as a tensor that broadcasts to
                `batch_shape x q x num_outputs`.
            posterior_transform: A posterior transform. Affine ones keep the skewness.
            judge: The judge of the utility: a number, or `"new"` for one without answers; `None` for the shared
                utility, or that of the model's judge, see `for_judge`. A sequence for joint utilities, an output for
                each.

        Raises:
            InputDataError: If `X` is not a tensor of single or double precision, the noise does not fit it, or the
                transform is not a posterior transform.
            BotorchTensorDimensionError: If `X` has another number of dimensions or columns.
            UnsupportedError: If an output does not exist.
        """
        if judge is not None:
            return self.for_judge(judge).posterior(X, output_indices, observation_noise, posterior_transform)
        return self.fitted().posterior(X, output_indices, observation_noise, posterior_transform)

    def latent_posterior(
        self, X: Tensor, judges: Sequence[Any] | None = None, crossed: bool = False
    ) -> SkewGPPosterior:
        r"""The posterior of the latent function in its own units, those of the noise of labels and comparisons.

        Args:
            X: A `batch_shape x q x d` tensor, before input transforms.
            judges: The judge of each of the `q` points, as in `SkewGP.posterior`, or a list of these for each of a
                batch of points, `b x q x d`; the model's own utility if `None`.
            crossed: Whether every point has all judges instead, an output for each.

        Raises:
            InputDataError: As `SkewGP.posterior`, or if the number of judges is not that of points.
            BotorchTensorDimensionError: If `X` has another number of dimensions or columns.
            UnsupportedError: If judges are given to a model of fantasies, without judges, or of several functions.
        """
        return self.fitted().latent_posterior(X, judges, crossed)

    def predictive(
        self, X: Tensor, judge: int | str | None = None, available: Tensor | None = None, none: bool = False
    ) -> Any:
        r"""The distribution of new observations at new points, as the likelihood defines it, in units of the outcome.

        It is the average over the reliability, width of ties or stretch that a new judge may have, and over what
        answers leave open of a known judge's, see `botorch_skewgp.fitting.spreads`. For a `MixedLikelihood` it is a
        mapping by kind, `predictive(X)[Numeric]`, of the parts that predict (slopes and affine probits do not).
        Outcomes of duels are, in this order, that the first point wins, that the second does, and, where ties are
        allowed, a tie; without ties `probs` is the probability that the first wins. Those of choices are the points.

        Args:
            X: A `batch_shape x q x d` tensor.
            judge: The judge of the answers, see `posterior`.
            available: For choices a boolean tensor that broadcasts to `batch_shape x q`: which points can be chosen;
                all if `None`.
            none: For choices whether "none of these" is an answer too, the last one, see `ChoiceOrNone`.

        Raises:
            InputDataError: If the judge gave no answers, points are not finite, or `available` does not fit them.
            UnsupportedError: If `available` is given for a likelihood without choices.

        Warns:
            FewAnswersWarning: If a label is said to be likelier than 0.9 by a model of fewer than 30 labels alone whose
                hyperparameters are fitted.
        """
        if judge is not None:
            one = self.for_judge(judge)
            if isinstance(one, Committee):
                raise InputDataError(
                    f"judge must be one judge, as answers of several are not predicted jointly; got {judge}."
                )
            return one.predictive(X, available=available, none=none)
        predicted = self.fitted().predictive(X, available, none)
        warn_of_sure_labels(self, predicted)
        return predicted

    @overload
    def for_judge(self, judge: int | str | None) -> Self: ...
    @overload
    def for_judge(self, judge: Sequence[int | str]) -> Committee: ...
    def for_judge(self, judge: int | str | Sequence[int | str] | None) -> Self | Committee:
        r"""A model of one judge's utility, for use as any BoTorch model; it shares all modules with this one.

        Args:
            judge: A judge's number, or `"new"` for one without answers: the shared utility plus an unknown part;
                `None` for the shared utility. A sequence for a `Committee`, an output for each.

        Raises:
            InputDataError: If the judge gave no answers, or `"new"` or a sequence is given without two judges.
            UnsupportedError: If this is a model of fantasies with inducing points.

        Example:
            >>> panel = Preference([[0, 1], [1, 2]], judge=[0, 1])
            >>> model = SkewGP(torch.rand(3, 2, dtype=torch.double), panel).for_judge(1)
        """
        if isinstance(judge, Sequence) and not isinstance(judge, str):
            if self._panel is None:
                raise InputDataError("A committee needs two judges or more; name them with judge= in observations.")
            return Committee(self, judge)
        if self._panel is None and judge == "new":
            raise InputDataError(
                "Predictions for a new judge need two judges or more; name them with judge= in observations."
            )
        code, fitted = code_of(judge, self.judges), self.fitted()
        if fitted.levels and self.inducing is not None:
            raise UnsupportedError(
                "With inducing points call for_judge first, and make fantasies of the model that it returns."
            )
        new = copy(self)  # which shares the posterior of the data
        new._judge = code
        if self._held is not None:
            new._held = replace(fitted, judge=code)
        return new

    def slips(self) -> Tensor:
        r"""The posterior probability that each answer is a slip, one that does not depend on the latent function.

        A tensor with an entry for each answer, in the order of the observations; zero for likelihoods without slips.
        From the draws; with `approximation="ep"` from expectation propagation. Fantasies are not counted.

        Example:
            >>> model = SkewGP(train_X, Preference(pairs), likelihood=PreferenceLikelihood(slip=0.05))
            >>> doubtful = model.slips().topk(3).indices  # ask these again
        """
        found = self.fitted().data.slips()
        return torch.cat(found).to(self._points) if found else self._points.new_zeros(0)

    # Conditioning

    def condition_on_observations(
        self, X: Tensor, Y: Tensor | Observation | Sequence[Observation], noise: Tensor | None = None, **kwargs: Any
    ) -> Self:
        r"""A model with more data and the same hyperparameters.

        Data without batch dimensions are added to the model's, and new draws are made, as for a new model of all data.
        Batches of numbers or duels, as acquisition functions make them, are conditioned on in closed form: every draw
        is updated and reweighted, differentiably in `X` and `Y`.

        Args:
            X: New points, `n' x d`, or `batch_shape x n' x d` for a batch.
            Y: Observations of any kind whose indices refer to rows of `X`; or `n' x 1` numbers in floating point; or
                `m x 2` integers, duels with the winner first. For a batch, tensors with further dimensions in front.
            noise: Known noise variances of numbers, in squared units of the outcome, of `Y`'s shape; for a tensor of
                numbers by default the mean of the known ones, where all numbers of the model have one.

        Raises:
            InputDataError: If observations do not fit `X` or the likelihood, or an argument has another name.
            UnsupportedError: If a fantasy model gets data without batch dimensions, or these require gradients.
        """
        if kwargs:
            raise InputDataError(f"condition_on_observations has no argument {', '.join(kwargs)}; leave it out.")
        if isinstance(Y, Tensor) and (X.ndim > 2 or Y.ndim > 2):
            return self._holding(self.fitted().condition_on_rows(X, self._rows_of_batch(X, Y, noise)))
        if noise is None and isinstance(Y, Tensor) and Y.is_floating_point():
            noise = mean_known_noise(self.observations)
        observations = as_observations(Y, noise)
        check_train_X(X, warn=False, name="X")
        X = without_gradients(X, "X")
        if isinstance(Y, Tensor):
            without_gradients(Y, "Y")
        old = self.datapoints
        if X.shape[-1] != old.shape[-1]:
            raise InputDataError(f"X must have {old.shape[-1]} columns like train_X; got {X.shape[-1]}.")
        check_observations(observations, X)
        further = [entry.shift(len(old)) for entry in self._by_own_judge(observations)]
        return self.with_data(torch.cat([old, X.to(old)]), [*self.observations, *further])

    def with_data(self, X: Tensor, observations: Sequence[Observation]) -> Self:
        r"""A copy with other data and the same hyperparameters; those of new judges begin as expected of any.

        Args:
            X: All points, `n x d`.
            observations: All observations.

        Raises:
            InputDataError: As `set_train_data`.
            UnsupportedError: If this is a model of fantasies.
        """
        new = copy(self)
        new._held = new._cached = None
        if self._held is not None:
            if self._held.levels:
                raise UnsupportedError("A fantasy model can only be conditioned on batches of numbers or duels.")
            new.__dict__["_modules"] = self._held.model._modules
        new = deepcopy(new)
        new.likelihood.extend_judges(max(judges_of(observations), default=-1) + 1)
        new.set_train_data(X, observations, strict=False)
        return new

    def _by_own_judge(self, observations: tuple[Observation, ...]) -> tuple[Observation, ...]:
        """Answers without a judge are assigned to the model's judge."""
        if self._judge == SHARED or all(entry.judge is not None for entry in observations):
            return observations
        if self._judge == NEW:
            raise InputDataError("These answers need judge=, as the model is for a new judge without a number.")
        return tuple(entry.by(self._judge - 1) if entry.judge is None else entry for entry in observations)

    def fantasize(self, X: Tensor, sampler: MCSampler, observation_noise: Tensor | None = None, **kwargs: Any) -> Self:
        r"""A batch of models, each given one possible outcome at new points.

        The outcomes are numbers if the likelihood takes numbers; else the outcomes of noisy values of the latent
        function: a label, a grade or a validity at each point, or the preferred one of the points.

        Args:
            X: A `batch_shape x n' x d` tensor of new points.
            sampler: Draws the noisy values; its sample shape is the shape of the batch of fantasies.
            observation_noise: Noise variances of numbers, in squared units of the outcome; if `None` the mean of known
                variances where all numbers have one, else the likelihood's.

        Raises:
            InputDataError: If `X` is not a tensor of single or double precision, or `sampler` not a sampler.
            BotorchTensorDimensionError: If `X` has another number of columns.
            UnsupportedError: If outcomes are no numbers and noise is given, or cannot be drawn.
        """
        fitted = self.fitted()
        with fantasize():  # input transforms of queries alone leave new data as they are
            X = self.checked_query(X)
            check_class(sampler, "sampler", MCSampler)
            if X.shape[-2] == 0:
                none = X.new_zeros(*sampler.sample_shape, *X.shape[:-1])
                return self._holding(fitted.condition_on_rows(X, FantasyRows.at_points(none, none, none)))
            if self.likelihood.takes_numbers:
                return super().fantasize(X, sampler, observation_noise, **kwargs)
            if observation_noise is not None:
                raise UnsupportedError(
                    "observation_noise is for numbers; leave it out, as labels and comparisons have the likelihood's "
                    "noise."
                )
            latent = fitted.latent_posterior(X).add_noise(fitted.model.likelihood.latent_noise(X))
        noisy = sampler(latent).detach().squeeze(-1)
        rows = fitted.likelihood.fantasy_rows(noisy, self.outcome_scale, seed=len(fitted.levels))
        return self._holding(fitted.condition_on_rows(X, rows))

    def _rows_of_batch(self, X: Tensor, Y: Tensor, noise: Tensor | None) -> FantasyRows:
        """The rows of a batch of numbers, or of duels given as integer pairs."""
        check_batch(X, Y, noise)
        likelihood, scale = self.answering_likelihood, self.outcome_scale
        if not Y.is_floating_point():
            reading, pairs = likelihood.reading(self.likelihood.kind_of_duels, X, scale), Y.long()
            return reading.rows_over(pairs, torch.full_like(pairs[..., 0], reading.highest), X.shape[-2])
        # with a warping these are values of the warped function, as posteriors are
        values = scale.standardize(Y).squeeze(-1)
        if noise is None:
            return FantasyRows.at_points(values, values, likelihood.noise_of_numbers(X))
        return FantasyRows.at_points(values, values, noise.expand_as(Y).squeeze(-1) / scale.scale**2)

    def condition_on_draws(self, X: Tensor, samples_per_draw: int = 1, seed: int = 0) -> tuple[Self, Tensor]:
        r"""A model whose draws also know noise-free values at points, drawn from the posterior, and these values.

        The distribution of the latent function stays the same, as a finer mixture over draws of rows and values.

        Args:
            X: An `n x d` tensor of points; their values, in units of the outcome, are `n x S`.
            samples_per_draw: The number of draws of the values for each of the model's draws.
            seed: The seed of the base samples.

        Raises:
            UnsupportedError: If the model has several outputs or a batch of fantasies.
            InputDataError: If there are no points or draws.
        """
        fitted, values = self.fitted().condition_on_draws(X, samples_per_draw, seed)
        return self._holding(fitted), values

    # Evidence

    @torch.no_grad()
    def log_marginal_likelihood(self, method: EvidenceMethod = "exact") -> LogNormalizer:
        r"""The log evidence of the observations ([Benavoli2021unified]_, Corollaries 1-3), without hyperparameter
        priors; the density of numbers is in units of the outcome, standardised or not.

        Args:
            method: `"exact"` for bridge sampling, with a standard error; `"ep"` for expectation propagation; or a
                function of interval rows, a `TruncatedNormal`, that returns their log normaliser, such as
                `botorch_skewgp.papers.corrected_log_normalizer`; these have the standard error `None`.

        Raises:
            UnsupportedError: If the method is unknown.
        """
        data = self.fitted().data
        data.check_contradictions()
        prior = data.model.forward(data.model.train_inputs[0])
        evidence = data.model.evidence(prior, data.model.row_plan(merge_equal=not callable(method)))
        of_rows = log_normalizer(evidence.rows, method, data.draws if method == "exact" else None)
        of_prior_rows = log_normalizer(evidence.prior_rows, method)
        errors = of_rows.standard_error, of_prior_rows.standard_error
        return LogNormalizer(
            evidence.log_evidence(of_rows.value, of_prior_rows.value)
            - evidence.num_numbers * math.log(self.outcome_scale.scale),
            None if errors[0] is None or errors[1] is None else errors[0].hypot(errors[1]),
        )

    def log_predictive_probability(
        self, X: Tensor, Y: Observation | Sequence[Observation], method: EvidenceMethod = "ep"
    ) -> Tensor:
        r"""The joint log probability (or density, for numbers) of new observations, as a ratio of two evidences.

        For one label this is the ratio of two orthant probabilities of [Benavoli2020skew]_, Corollary 2; averaging over
        the mixture, as `predictive` does, gives the same up to Monte Carlo error.

        Args:
            X: An `n' x d` tensor of new points.
            Y: Observations whose indices refer to rows of `X`.
            method: How evidences are computed, see `log_marginal_likelihood`.
        """
        larger = self.condition_on_observations(X, Y)
        return larger.log_marginal_likelihood(method).value - self.log_marginal_likelihood(method).value

    def subset_output(self, idcs: list[int]) -> Self:
        """The model itself; raises `UnsupportedError` if some of several outputs are chosen."""
        if check_output_indices(idcs, self._num_outputs) != list(range(self._num_outputs)):
            raise UnsupportedError(f"This model has {self._num_outputs} output(s); got idcs={idcs}.")
        return self
