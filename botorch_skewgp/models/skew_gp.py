r"""The skew Gaussian process as a BoTorch model.

.. [Benavoli2020skew] Benavoli, Azzimonti, Piga. Skew Gaussian processes for classification. Machine Learning 109, 2020.
.. [Benavoli2021unified] Benavoli, Azzimonti, Piga. Machine Learning 110, 2021.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self, overload

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.posteriors import Posterior
from botorch.utils.datasets import SupervisedDataset
from torch import Tensor

from botorch_skewgp.checks import check_class, check_flags
from botorch_skewgp.likelihoods import OutcomeScale
from botorch_skewgp.likelihoods.predictions import averaged
from botorch_skewgp.models.committee import Committee
from botorch_skewgp.models.few_answers import warn_of_sure_labels
from botorch_skewgp.models.inputs import check_output_indices, from_dataset
from botorch_skewgp.models.latent_model import LatentModel
from botorch_skewgp.models.panel import code_of, judge_of
from botorch_skewgp.models.row_model import EvidenceMethod, log_normalizer
from botorch_skewgp.models.transforms import apply_posterior_transform
from botorch_skewgp.observations import Observation
from botorch_skewgp.truncated.evidence import LogNormalizer


class SkewGP(LatentModel):
    r"""A Gaussian process with the exact, skewed posterior for labels, comparisons and other observations.

    Each observation becomes rows: linear functionals of the latent function plus Gaussian noise, observed as numbers or
    in intervals. Their truncated normal is sampled once per fit; given its draws the latent function is Gaussian in
    closed form ([Benavoli2021unified]_, Theorems 3.1-3.3).

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
        X = self.checked_query(X)
        if output_indices is not None:
            output_indices = check_output_indices(output_indices, self._num_outputs)
        now = self.snapshot
        posterior = self._posterior_at(now.inputs_at(X, self.judge_code), now)
        if output_indices is not None and self._num_outputs > 1:
            posterior = posterior.select_outputs(output_indices)
        if not isinstance(observation_noise, bool):
            check_class(observation_noise, "observation_noise", Tensor)
        if isinstance(observation_noise, Tensor):
            posterior = posterior.add_noise(observation_noise / self._outcome_scale.scale**2)
        elif observation_noise:
            posterior = posterior.add_noise(self._answering(now.model.likelihood).latent_noise(X))
        if self._outcome_scale != OutcomeScale():
            scale = self._outcome_scale
            posterior = posterior.scalarize(X.new_tensor([scale.scale]), scale.location)
        return apply_posterior_transform(posterior_transform, posterior, X)

    def predictive(
        self, X: Tensor, judge: int | str | None = None, available: Tensor | None = None, none: bool = False
    ) -> Any:
        r"""The distribution of new observations at new points, as the likelihood defines it, in units of the outcome.

        It is the average over the reliability, width of ties or stretch that a new judge may have, and over what
        answers leave open of a known judge's, see `botorch_skewgp.fitting.spreads`. For a `MixedLikelihood` it is a
        mapping by kind, `predictive(X)[Numeric]`, of the parts that predict (slopes and affine probits do not).

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
        X, now = self.checked_query(X), self.snapshot
        if not bool(X.isfinite().all()):
            raise InputDataError(
                "X contains NaN or infinite values; remove or repair these. Unavailable options need values too, "
                "such as those of another option."
            )
        posterior = self._posterior_at(now.inputs_at(X, self.judge_code), now)
        likelihood = self._answering(now.model.likelihood)
        check_flags(none=none)
        asked: dict[str, Any] = {} if available is None else {"available": available}
        asked |= {"none": True} if none else {}
        if asked and not likelihood.predicts_choices:
            raise UnsupportedError(
                f"{next(iter(asked))} is for choices; with several kinds use the likelihood of choices: "
                "model.likelihood.for_kind(Choice)(model.latent_posterior(X), scale=model.outcome_scale, ...)."
            )
        options = {"scale": self._outcome_scale, **asked}
        reliability = self.judge_reliability
        around = None if reliability is None else reliability.around_judge(judge_of(self._judge))
        if around is None:
            predicted = likelihood(posterior, **options)
        else:  # a new judge's is of 1
            predicted = averaged([likelihood(posterior.scaled(value), **options) for value in around[0]], around[1])
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
        code = code_of(judge, self.judges)
        if self._fantasies and self.inducing is not None:
            raise UnsupportedError(
                "With inducing points call for_judge first, and make fantasies of the model that it returns."
            )
        return self.of_judge(code)

    def slips(self) -> Tensor:
        r"""The posterior probability that each answer is a slip, one that does not depend on the latent function.

        A tensor with an entry for each answer, in the order of the observations; zero for likelihoods without slips.
        From the draws; with `approximation="ep"` from expectation propagation. Fantasies are not counted.

        Example:
            >>> model = SkewGP(train_X, Preference(pairs), likelihood=PreferenceLikelihood(slip=0.05))
            >>> doubtful = model.slips().topk(3).indices  # ask these again
        """
        found = self.snapshot.slip_probabilities()
        return torch.cat(found).to(self._points) if found else self._points.new_zeros(0)

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
        now = self.snapshot
        now.check_contradictions()
        prior = now.model.forward(now.model.train_inputs[0])
        evidence = now.model.evidence(prior, merge_equal=not callable(method))
        of_rows = log_normalizer(evidence.rows, method, now.draws if method == "exact" else None)
        of_prior_rows = log_normalizer(evidence.prior_rows, method)
        errors = of_rows.standard_error, of_prior_rows.standard_error
        num_numbers = sum(entry.numbers.numel() for entry in self.observations)
        return LogNormalizer(
            evidence.log_evidence(of_rows.value, of_prior_rows.value)
            - num_numbers * math.log(self.outcome_scale.scale),
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
