"""The adapter between Ax's experiments and SkewGPs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
import torch
from ax.adapter.base import BaseGenArgs, GenResults
from ax.adapter.torch import BOPE_ALLOWED_TRANSFORMS, TorchAdapter
from ax.adapter.transforms.base import Transform
from ax.core.arm import Arm
from ax.core.data import Data
from ax.core.data_utils import ExperimentData
from ax.core.experiment import Experiment
from ax.core.generator_run import GeneratorRun
from ax.core.observation import ObservationData, ObservationFeatures
from ax.core.optimization_config import OptimizationConfig, PreferenceOptimizationConfig
from ax.core.outcome_constraint import ComparisonOp
from ax.core.parameter import ChoiceParameter, RangeParameter
from ax.core.search_space import SearchSpace, SearchSpaceDigest
from ax.core.types import TCandidateMetadata
from ax.core.utils import extract_pending_observations
from ax.exceptions.core import DataRequiredError, UnsupportedError, UserInputError
from ax.generators.torch.botorch_modular.generator import BoTorchGenerator
from ax.generators.torch_base import TorchGenerator, TorchOptConfig
from ax.generators.types import TConfig
from ax.utils.common.constants import Keys
from ax.utils.common.random import with_rng_seed
from botorch.models import ModelList
from botorch.posteriors import TorchPosterior
from botorch.sampling.get_sampler import get_sampler
from botorch.utils.datasets import SupervisedDataset
from pandas import DataFrame
from torch import Tensor

from botorch_skewgp.ax.acquisition import AGAINST, BEST_POINT, OPEN_PAIRS
from botorch_skewgp.ax.comparisons import open_pairs, recorded
from botorch_skewgp.ax.data import ObservationDataset, with_every_trial, with_final_numbers
from botorch_skewgp.ax.internals import ValidityMetric
from botorch_skewgp.ax.transforms import PowerTransformObjective
from botorch_skewgp.hosts.data import as_rows, observed
from botorch_skewgp.hosts.quiet import suppress_irrelevant_warnings
from botorch_skewgp.hosts.records import Records
from botorch_skewgp.models import SkewGP
from botorch_skewgp.observations import Binary, Censored, Numeric, Observation

Failures = Literal["constraint", "ignore"]
NUM_SAMPLES = 1024  # of outcomes, for the probability of meeting constraints
LIKELY = 0.5  # the least probability of an arm that meets the constraints
POSSIBLE = 0.25  # of an arm whose own numbers meet them, as one at the limit, which half of the errors break


class SkewGPAdapter(TorchAdapter):
    """Passes all data of an experiment to SkewGPs: numbers, labels, comparisons, and failed trials.

    See `skewgp_generation_strategy` for the arguments that Ax's adapter lacks. The metric of validity is added to the
    experiment as a tracking metric if it is needed, so that Ax can report it.
    """

    def __init__(
        self,
        *,
        experiment: Experiment,
        generator: TorchGenerator,
        search_space: SearchSpace | None = None,
        data: Data | None = None,
        transforms: Sequence[type[Transform]] | None = None,
        transform_configs: Mapping[str, TConfig] | None = None,
        optimization_config: OptimizationConfig | None = None,
        torch_device: torch.device | None = None,
        failures: Failures = "constraint",
        validity_metric: str = "validity",
        binary_metrics: Sequence[str] = (),
        feasibility_threshold: float = 0.5,
        seed: int | None = 0,
    ) -> None:
        self.failures = failures
        self.validity_metric = validity_metric
        self.feasibility_threshold = feasibility_threshold
        self.seed = seed
        self.labels = (*binary_metrics, validity_metric)
        self._records = Records([], {}, [])
        self._attempts = Counter[int]()  # at trials of each number
        self.learns_objective = isinstance(
            optimization_config or experiment.optimization_config, PreferenceOptimizationConfig
        )
        if self.learns_objective:
            transforms = [entry for entry in transforms or () if entry in BOPE_ALLOWED_TRANSFORMS]
        super().__init__(
            experiment=experiment,
            generator=generator,
            search_space=search_space,
            data=data,
            transforms=transforms,
            transform_configs=transform_configs,
            optimization_config=optimization_config,
            torch_device=torch_device,
        )

    def _objectives(self) -> list[str]:
        return [] if self._optimization_config is None else list(self._optimization_config.objective.metric_signatures)

    def _set_and_filter_training_data(
        self, experiment_data: ExperimentData, search_space: SearchSpace
    ) -> ExperimentData:
        """Keep Ax's own data as the training data, and fit to all data of the experiment."""
        experiment_data = super()._set_and_filter_training_data(experiment_data, search_space)
        if self.learns_objective:
            return experiment_data
        metrics = self._experiment.metrics
        records = recorded(self._experiment)
        bounds = {(*arm, metrics[name].signature): ends for (*arm, name), ends in records.bounds.items()}
        records = records._replace(bounds=bounds)
        if records[:2] != self._records[:2]:
            self._last_experiment_data = None  # Ax does not compare these before it fits again
        self._records = records
        experiment_data = self._with_every_trial(experiment_data)
        if self.validity_metric in experiment_data.metric_signatures and self.validity_metric not in metrics:
            self._experiment.add_metric(ValidityMetric(name=self.validity_metric, lower_is_better=False))
        return experiment_data

    def _transform_inputs_for_cv(
        self, cv_training_data: ExperimentData, *args: Any, **kwargs: Any
    ) -> tuple[ExperimentData, list[ObservationFeatures], SearchSpace]:
        """Add the data of the fit, not later ones: those may be of a kind without parameters in the model."""
        if not self.learns_objective:
            cv_training_data = self._with_every_trial(cv_training_data)
        return super()._transform_inputs_for_cv(cv_training_data, *args, **kwargs)

    def _cross_validate(self, *args: Any, **kwargs: Any) -> list[ObservationData]:
        """Predict the reported metrics: validity that follows from failures has no observations to compare with."""
        predictions = []
        for entry in super()._cross_validate(*args, **kwargs):
            keep = [i for i, name in enumerate(entry.metric_signatures) if name in self.metric_signatures]
            names = [entry.metric_signatures[i] for i in keep]
            covariance = entry.covariance[keep][:, keep]
            predictions.append(ObservationData(metric_signatures=names, means=entry.means[keep], covariance=covariance))
        return predictions

    def _with_every_trial(self, experiment_data: ExperimentData) -> ExperimentData:
        return with_every_trial(
            self._experiment,
            experiment_data,
            objectives=self._objectives(),
            validity=None if self.failures == "ignore" else self.validity_metric,
            labels=self.labels,
            records=self._records,
        )

    def _fit(self, search_space: SearchSpace, experiment_data: ExperimentData, **kwargs: Any) -> None:
        """As Ax does; after a failed fit every later call tries again."""
        try:
            super()._fit(search_space, experiment_data, **kwargs)
        except BaseException:
            self._last_experiment_data = None
            raise

    def _kinds(self, outcome: str) -> list[type[Observation]]:
        """The kinds of observations of an outcome in the whole experiment."""
        if outcome in self.labels:
            return [Binary]
        data, kinds = self._training_data.observation_data, list[type[Observation]]()
        if ("mean", outcome) in data.columns and data["mean", outcome].notna().any():
            kinds.append(Numeric)
        if any(metric == outcome for *_, metric in self._records.bounds):
            kinds.append(Censored)
        if outcome in self._objectives():
            kinds += [entry.kind for entry in self._records.judgements]
        return list(dict.fromkeys(kinds))

    def _convert_experiment_data(
        self,
        experiment_data: ExperimentData,
        outcomes: list[str],
        parameters: list[str],
        search_space_digest: SearchSpaceDigest | None,
    ) -> tuple[list[SupervisedDataset], list[str], list[list[TCandidateMetadata]] | None]:
        if self.learns_objective:
            return super()._convert_experiment_data(experiment_data, outcomes, parameters, search_space_digest)
        if search_space_digest is not None and search_space_digest.task_features:
            raise UnsupportedError("Tasks are not supported; take the task parameter out of the search space.")
        data = experiment_data.observation_data
        points = experiment_data.arm_data.reindex(data.index)[parameters]
        X = self._array_to_tensor(points.to_numpy(dtype=float, copy=True))
        datasets: list[SupervisedDataset] = []
        for outcome in outcomes:
            dataset = self._dataset(outcome, X, parameters, data)
            if dataset is not None:
                datasets.append(dataset)
            elif outcome in self._objectives():
                raise DataRequiredError(
                    f"No trial has a number for the objective {outcome!r} and no trials were compared. Complete trials "
                    "with data, or compare them by attach_comparison."
                )
        return datasets, [dataset.outcome_names[0] for dataset in datasets], None

    def _dataset(self, outcome: str, X: Tensor, parameters: list[str], data: DataFrame) -> ObservationDataset | None:
        """The dataset of one outcome, with the arms that have observations of it; `None` without. An arm of several
        trials is one point with several observations: `Y` has their mean, `group_indices` the first trial.
        """
        is_objective, has_labels = outcome in self._objectives(), outcome in self.labels
        columns = (data[part, outcome].to_numpy(dtype=float, copy=True) for part in ("mean", "sem"))
        mean, sem = map(self._array_to_tensor, columns)
        ends = np.array([self._records.bounds.get((*key, outcome), (-math.inf, math.inf)) for key in data.index]).T
        rows = {name: row for row, (_, name) in reversed([*enumerate(data.index)])}
        known = observed(
            X,
            mean,
            Binary if has_labels else Numeric,
            variances=None if has_labels else sem.square(),
            bounds=self._array_to_tensor(self.power_transform.transform_bounds(outcome, ends)),
            judgements=as_rows(self._records.judgements, rows) if is_objective else (),
        )
        if known is None:
            return None
        numbers, none = ~mean.isnan(), torch.full_like(known.X[:, 0], math.nan)
        Y = none.scatter_reduce(0, known.point[numbers], mean[numbers], "mean", include_self=False)
        return ObservationDataset(
            known.X,
            Y.unsqueeze(-1),
            observations=known.observations,
            kinds=self._kinds(outcome),
            minimize=is_objective and self._is_minimized(outcome),
            feature_names=parameters,
            outcome_names=[outcome],
            group_indices=torch.tensor([data.index[row][0] for row in known.rows.tolist()]),
        )

    @property
    def power_transform(self) -> PowerTransformObjective:
        """The transform of the objective's numbers; one without numbers changes nothing."""
        found = self.transforms.get(PowerTransformObjective.__name__)
        return found if isinstance(found, PowerTransformObjective) else PowerTransformObjective()

    def _is_minimized(self, outcome: str) -> bool:
        assert self._optimization_config is not None
        weights = self._optimization_config.objective.metric_weights
        return any(weight < 0 for name, weight in weights if self._experiment.metrics[name].signature == outcome)

    @property
    def of_objective(self) -> tuple[ObservationDataset, SkewGP]:
        """The data and the model of the only objective, minimised or maximised."""
        (outcome,) = self._objectives()
        assert isinstance(self.generator, BoTorchGenerator)
        (dataset,) = [entry for entry in self.generator.surrogate.training_data if entry.outcome_names == [outcome]]
        model = self._models()[self.outcomes.index(outcome)]
        assert isinstance(dataset, ObservationDataset)
        assert isinstance(model, SkewGP)
        return dataset, model

    def points_of(self, arms: Sequence[Arm]) -> Tensor:
        """The points of arms in the models' space, `n x d`."""
        X = self.transform_observation_features([ObservationFeatures.from_arm(arm) for arm in arms])
        return X.to(self.of_objective[0].X)

    def challenger(self, champion: Arm, fixed_features: ObservationFeatures | None) -> GeneratorRun:
        """The arm of the largest expected improvement over another one, and over those that wait for an answer."""
        return self.gen(
            n=1,
            pending_observations=extract_pending_observations(self._experiment),
            fixed_features=fixed_features,
            model_gen_options={Keys.AX_ACQUISITION_KWARGS: {AGAINST: self.points_of([champion])}},
        )

    def best_point(self, arms: Sequence[Arm]) -> Arm | None:
        """The best arm of the whole search space, which may be one of those given; `None` if none is likely to do."""
        attempts = self._attempts.copy()
        try:
            run = self.gen(n=1, model_gen_options={Keys.AX_ACQUISITION_KWARGS: {BEST_POINT: True}})
        finally:
            self._attempts = attempts  # the next trial is the one that it would have been
        return self.best_of([*(Arm(arm.parameters, name="best point") for arm in run.arms), *arms])

    def best_of(self, arms: Sequence[Arm]) -> Arm | None:
        """The best arm likely to meet the constraints, or the likeliest whose own numbers meet them; `None` if none."""
        if not arms:
            return None
        scores, feasible, if_measured = self.outlook(arms)
        is_likely = feasible >= LIKELY
        if is_likely.any():
            scores = scores.masked_fill(~is_likely, -math.inf)
        else:
            scores = feasible.masked_fill((if_measured < LIKELY) | (feasible < POSSIBLE), -math.inf)
        best = int(scores.argmax())
        return arms[best] if math.isfinite(scores[best]) else None

    @torch.no_grad()
    def outlook(self, arms: Sequence[Arm]) -> tuple[Tensor, Tensor, Tensor]:
        """The mean of the objective of each arm, the larger the better, the probability that it works and meets the
        constraints, and the same given its own numbers.
        """
        arguments = self._get_transformed_gen_args(search_space=self._search_space.clone())
        _, config = self._get_transformed_model_gen_args(
            arguments.search_space,
            pending_observations=arguments.pending_observations,
            fixed_features=arguments.fixed_features,
            optimization_config=arguments.optimization_config,
        )
        X = self.transform_observation_features([ObservationFeatures.from_arm(arm) for arm in arms])
        posteriors = [model.posterior(X.unsqueeze(-2)) for model in self._models()]
        mean = torch.cat([posterior.mean.squeeze(-1) for posterior in posteriors], dim=-1)
        scores = (mean @ config.objective_weights.to(mean).mT).squeeze(-1)
        if config.outcome_constraints is None:
            return scores, torch.ones_like(scores), torch.ones_like(scores)
        A, b = config.outcome_constraints
        return scores, *self._feasibility(posteriors, A.to(mean), b.to(mean).squeeze(-1), arms)

    def _models(self) -> list[Any]:
        """The models of all outcomes, in their order."""
        assert isinstance(self.generator, BoTorchGenerator)
        model = self.generator.surrogate.model
        return list(model.models) if isinstance(model, ModelList) else [model]

    def _feasibility(
        self, posteriors: Sequence[TorchPosterior], A: Tensor, b: Tensor, arms: Sequence[Arm]
    ) -> tuple[Tensor, Tensor]:
        """The probability of each arm to meet all constraints `A y <= b`, from draws of the outcomes `y`.

        The second one takes those for certain that the arm's own numbers meet.
        """
        draws = []
        for number, posterior in enumerate(posteriors):
            sampler = get_sampler(posterior, torch.Size([NUM_SAMPLES]), seed=number)
            draws.append(sampler(posterior).squeeze(-1))
        is_met = torch.cat(draws, dim=-1) @ A.mT <= b
        measured = self._measured(arms).unsqueeze(-2)
        sums = torch.where(A != 0, A * measured, 0.0).sum(-1)  # NaN where a metric has no number
        is_met_or_measured = is_met | (sums <= b)
        return is_met.all(-1).to(A).mean(0), is_met_or_measured.all(-1).to(A).mean(0)

    def _measured(self, arms: Sequence[Arm]) -> Tensor:
        """The mean number of each arm and outcome, NaN where there is none or it is a label."""
        data = with_final_numbers(self._experiment, self._training_data).observation_data
        means = data["mean"].groupby(level="arm_name").mean() if len(data) else data.reindex(columns=[])
        means = means.reindex(index=[arm.name for arm in arms], columns=self.outcomes).astype(float)
        means[[name for name in self.outcomes if name in self.labels]] = math.nan
        return self._array_to_tensor(means.to_numpy(copy=True))

    def _validate_gen_inputs(
        self,
        n: int,
        search_space: SearchSpace | None = None,
        optimization_config: OptimizationConfig | None = None,
        pending_observations: dict[str, list[ObservationFeatures]] | None = None,
        fixed_features: ObservationFeatures | None = None,
        model_gen_options: TConfig | None = None,
    ) -> None:
        """As Ax does, and refuse fixed parameters outside of the search space."""
        super()._validate_gen_inputs(
            n, search_space, optimization_config, pending_observations, fixed_features, model_gen_options
        )
        if fixed_features is not None:
            check_fixed(fixed_features.parameters, search_space or self._search_space)

    def _get_transformed_gen_args(self, *args: Any, **kwargs: Any) -> BaseGenArgs:
        config = kwargs.get("optimization_config") or self._optimization_config
        _check_constraints(config, self.outcomes, has_baseline=self.status_quo is not None)
        return super()._get_transformed_gen_args(*args, **kwargs)

    def _get_transformed_model_gen_args(self, *args: Any, **kwargs: Any) -> tuple[SearchSpaceDigest, TorchOptConfig]:
        """As Ax does, but with all metrics of each constraint, and a bound of the probability of validity."""
        digest, config = super()._get_transformed_model_gen_args(*args, **kwargs)
        optimization_config = kwargs.get("optimization_config") or self._optimization_config
        assert optimization_config is not None  # or else Ax has raised
        none = torch.zeros(0, len(self.outcomes), dtype=torch.double, device=self.device)
        A, b = config.outcome_constraints or (none, none[:, :1])
        A = torch.zeros_like(A)
        for row, entry in enumerate(optimization_config.outcome_constraints):
            sign = 1.0 if entry.op == ComparisonOp.LEQ else -1.0
            for name, weight in entry.metric_weights:
                A[row, self.outcomes.index(name)] += sign * weight
        name = self.validity_metric
        if self.failures == "constraint" and name in self.outcomes and name not in optimization_config.metric_names:
            works = A.new_zeros(1, len(self.outcomes))
            works[0, self.outcomes.index(name)] = 1.0
            A, b = torch.cat([A, -works]), torch.cat([b, b.new_full((1, 1), -self.feasibility_threshold)])
        pairs = [[ObservationFeatures.from_arm(arm) for arm in pair] for pair in open_pairs(self._experiment)]
        options = dict(config.model_gen_options or {})
        if pairs:
            of_acquisition = dict(cast(dict[str, Any], options.get(Keys.AX_ACQUISITION_KWARGS, {})))
            of_acquisition[OPEN_PAIRS] = [self.transform_observation_features(pair) for pair in pairs]
            options[Keys.AX_ACQUISITION_KWARGS] = of_acquisition
        return digest, replace(config, outcome_constraints=(A, b) if len(A) else None, model_gen_options=options)

    def _gen(self, *args: Any, **kwargs: Any) -> GenResults:
        """As Ax does, with a seed for every attempt at a trial: Ax asks again where a point was tried before."""
        num_trials = len(self._experiment.trials)
        seed = None if self.seed is None else hash((self.seed, num_trials, self._attempts[num_trials])) % 2**32
        self._attempts[num_trials] += 1
        with with_rng_seed(seed), suppress_irrelevant_warnings():
            return super()._gen(*args, **kwargs)


def check_fixed(fixed: Mapping[str, Any], search_space: SearchSpace) -> None:
    """Raise `UserInputError` for a fixed value that its parameter cannot have, which Ax would move to a bound."""
    for name, value in fixed.items():
        parameter = search_space.parameters.get(name)
        if isinstance(parameter, RangeParameter):
            value = value.item() if isinstance(value, np.generic) else value
            is_allowed = value == value and parameter.validate(value)
            allowed = f"a number of its range, {parameter.lower} to {parameter.upper}"
        elif isinstance(parameter, ChoiceParameter):
            is_allowed, allowed = parameter.validate(value), f"one of its values, {parameter.values}"
        else:
            continue
        if not is_allowed:
            raise UserInputError(f"The parameter {name!r} must be fixed at {allowed}; got {value!r}.")


def _check_constraints(config: OptimizationConfig | None, outcomes: Sequence[str], has_baseline: bool) -> None:
    """Raise an error for constraints that Ax would use wrongly, and for metrics without data."""
    if config is None:
        return
    for entry in config.outcome_constraints:
        name, terms = entry.expression, entry.metric_weights
        if entry.relative and len(terms) > 1:
            raise UnsupportedError(
                f"The outcome constraint {name!r} is relative to the baseline; that needs a single metric. Give the "
                "bound as a number."
            )
        if entry.relative and not has_baseline:
            raise DataRequiredError(
                f"The outcome constraint {name!r} is relative to the baseline, of which there are no data. Call "
                "client.attach_baseline and complete its trial, or give the bound as a number."
            )
        if missing := [metric for metric, _ in terms if metric not in outcomes]:
            raise DataRequiredError(
                f"No trial has a number for the metric {missing[0]!r} of the outcome constraint {name!r}. Complete "
                "trials with it, or configure the optimization without this constraint."
            )
