"""The sampler that Optuna's studies call."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from botorch.exceptions.errors import InputDataError
from optuna import Study, logging
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState

from botorch_skewgp.acquisition.mixed_search import MixedSearch
from botorch_skewgp.checks import as_count, as_seed
from botorch_skewgp.hosts.quiet import suppress_irrelevant_warnings
from botorch_skewgp.hosts.records import as_finite
from botorch_skewgp.optuna import internals
from botorch_skewgp.optuna.search_space import SearchSpace, modelled_parameters, nearest, search_space_of
from botorch_skewgp.optuna.study_data import (
    AGAINST,
    END,
    FITS,
    FIXED,
    INTERRUPT,
    RELATIVE_PARAMS,
    TOLD,
    UNHEARD,
    Failures,
    StudyData,
    read_study,
)
from botorch_skewgp.optuna.study_model import Fits, StudyModel
from botorch_skewgp.optuna.turns import choosing, seeded, wait_for_earlier_trials

_logger = logging.get_logger(__name__)

MAX_ATTEMPTS = 3  # to account for what other workers have started meanwhile


class SkewGPSampler(BaseSampler):
    r"""An Optuna sampler that learns from every trial: numbers, failures, pruned trials and comparisons.

    One sampler for all kinds of studies, with one or several objectives, constraints (`Trial.set_constraint`), and
    comparisons on optuna-dashboard's page or by `report_comparison` and its kin. The next trial maximises the expected
    improvement times the probability that the trial works and meets the constraints.

    What comes next depends on what the study has stored, the seed and the number of the trial alone. Workers that
    share a study may share a seed, and a study that is resumed in another process goes on as it would have.

    The first trials, and parameters that no completed trial has yet, are sampled independently. Those that only some
    have, since the objective branches or its ranges have changed, are modelled too (`search_space`). Of a trial in the
    queue (`Study.enqueue_trial`) with values of some parameters, the others are the best beside these.

    Example:
        >>> study = optuna.create_study(sampler=SkewGPSampler(seed=0))
        >>> study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, n_trials=3)

    Args:
        seed: The seed; a random one if `None`.
        n_startup_trials: The number of trials that are sampled independently before there is a model, whatever comes
            of them. In a preferential study there is a model from the first comparison on.
        failures: Meaning of a failed or pruned trial. `"constraint"`: that trials do not work there, which is learned
            as a function of its own. `"ignore"`: nothing, as with Optuna's samplers. A trial that Ctrl-C or the death
            of its worker ended says nothing either way.
        independent_sampler: A sampler of what is sampled independently; random by default.
        warn_independent_sampling: Whether to log the parameters that are sampled independently although there is a
            model.

    Raises:
        InputDataError: If an argument is of another kind or out of its range.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        n_startup_trials: int = 10,
        failures: Failures = "constraint",
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
    ) -> None:
        if failures not in ("constraint", "ignore"):
            raise InputDataError(f"failures must be 'constraint' or 'ignore'; got {failures!r}.")
        if not (independent_sampler is None or isinstance(independent_sampler, BaseSampler)):
            raise InputDataError(f"independent_sampler must be a sampler of Optuna; got {independent_sampler!r}.")
        self._seed = int(torch.Generator().seed()) if seed is None else as_seed(seed)
        self._n_startup_trials = as_count(n_startup_trials, "n_startup_trials", least=1)
        self._failures: Failures = failures
        self._independent_sampler = independent_sampler
        self._warn_independent_sampling = warn_independent_sampling
        self._warned_of: set[str] = set()
        self._fits = Fits(self._seed)

    def reseed_rng(self) -> None:
        """Called for workers in threads, which need no seeds of their own here: every trial has one."""
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Marks a trial that may be failed without its objective's doing; passed on to the independent sampler."""
        if END in trial.system_attrs or internals.may_be_failed_by_others(internals.study_of(study)):
            internals.set_trial_system_attr(internals.study_of(study), trial, END, UNHEARD)
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Marks how a failed trial ended; passed on to the independent sampler."""
        interrupted = state == TrialState.FAIL and internals.was_interrupted()
        if interrupted or END in trial.system_attrs:
            internals.set_trial_system_attr(internals.study_of(study), trial, END, INTERRUPT if interrupted else TOLD)
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters of a model, as `modelled_parameters` says."""
        return modelled_parameters(internals.study_of(study).get_trials(deepcopy=False))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The next point, by name; empty if there are too few data for a model."""
        if not search_space:
            return {}
        study = internals.study_of(study)  # trials of all brackets tell of all
        space = search_space_of(study.get_trials(deepcopy=False), search_space)
        data = read_study(study, space, self._failures, leave_out=[trial.number])
        if not data.has_started(self._n_startup_trials):
            return {}
        with choosing(study, trial):
            return self._chosen(study, trial, space, data)

    def _chosen(self, study: Study, trial: FrozenTrial, space: SearchSpace, data: StudyData) -> dict[str, Any]:
        """The next point according to a model; nothing if the model has nothing to say."""
        seed = self._seed_of(trial)
        for _ in range(MAX_ATTEMPTS):
            with suppress_irrelevant_warnings():
                model = StudyModel(data, space, self._fits)
            with seeded(seed), suppress_irrelevant_warnings():
                acquisition = model.acquisition(seed, data.X[data.pending], as_finite(trial.system_attrs.get(AGAINST)))
                if acquisition is None:
                    return {}
                domain = space.domain_with(trial.system_attrs.get(FIXED, {}))
                point = MixedSearch(acquisition, domain, torch.Generator().manual_seed(seed)).best_point(data.X)
            wait_for_earlier_trials(study, trial)
            seen, data = data.X, read_study(study, space, self._failures, leave_out=[trial.number])
            if (data.X.unsqueeze(1) == seen).all(-1).any(-1).all():
                break  # else another worker has started a trial meanwhile, perhaps at the same point, or even ended it
        internals.set_trial_system_attr(study, trial, FITS, [fit[:4] for fit in model.fits])
        params = space.params(point)
        for name, value in params.items():  # for other workers, until the objective has asked for all of them
            stored = space.distributions[name].to_internal_repr(value)
            internals.set_trial_system_attr(study, trial, RELATIVE_PARAMS + name, stored)
        return params

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A value of one parameter that the model does not include, or has chosen for another range than is wanted."""
        attrs = internals.study_of(study).get_trials(deepcopy=False)[trial.number].system_attrs
        chosen = as_finite(attrs.get(RELATIVE_PARAMS + param_name))
        if chosen is not None and not isinstance(param_distribution, CategoricalDistribution):
            return nearest(param_distribution, chosen)
        if self._warn_independent_sampling and param_name not in self._warned_of:
            known = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            if len(known) >= self._n_startup_trials and not param_distribution.single():
                self._warned_of.add(param_name)
                _logger.warning(
                    f"Trial {trial.number}: {param_name!r} is sampled independently of all other parameters, because "
                    "no completed trial has it yet, or not with such a value."
                )
        sampler = self._independent_sampler
        if sampler is None:
            sampler = RandomSampler(seed=self._seed_of(trial, param_name) % 2**32)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def _seed_of(self, trial: FrozenTrial, name: str = "") -> int:
        """A seed for a trial, or a parameter of it."""
        digest = hashlib.sha256(f"{self._seed} {trial.number} {name}".encode()).digest()
        return int.from_bytes(digest[:7], "big")
