"""The trials of a study on the page of `botorch_skewgp.judge`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution

from botorch_skewgp.checks import is_whole
from botorch_skewgp.hosts.records import Judgement, as_value
from botorch_skewgp.optuna import internals
from botorch_skewgp.optuna.decisions import get_best_trial
from botorch_skewgp.optuna.judgements import JUDGEMENT, check_single_objective


class JudgedTrials:
    r"""The best trial of a study beside new ones, for `botorch_skewgp.judge.serve`. Answers are in the study too, with
    the judges' names; a trial runs until its value is told, which is not needed.

    Example::

        study = optuna.create_study(sampler=SkewGPSampler(seed=0), storage="sqlite:///study.db")
        serve(JudgedTrials(study, {"pitch": FloatDistribution(100, 900, log=True)}, show=sound), "answers.json")

    Args:
        study: A study with one objective, in a database if another process is to go on.
        space: The distributions of the parameters by name, as for `Study.ask`.
        show: A function of the parameters by name, whose result the page shows, as that of `judge.Designs`.

    Raises:
        InputDataError: If it is no study.
        UnsupportedError: If the study has several objectives.
    """

    def __init__(self, study: Any, space: Mapping[str, BaseDistribution], show: Callable[..., Any]) -> None:
        self._study, self._space, self._show = internals.study_of(study), dict(space), show
        check_single_objective(self._study)

    def __contains__(self, item: Any) -> bool:
        """Whether the study has a trial of this number."""
        return is_whole(item) and 0 <= item < len(self._study.get_trials(deepcopy=False))

    def ask(self, num_shown: int, answers: Sequence[Judgement], pending: Sequence[Sequence[int]]) -> list[int]:
        """The best trial, as soon as there are answers, and new ones."""
        shown = [get_best_trial(self._study).number] if answers else []
        return shown + [self._study.ask(self._space).number for _ in range(num_shown - len(shown))]

    def show(self, item: int) -> Any:
        """What the function returns of a trial."""
        return self._show(**self._study.get_trials(deepcopy=False)[item].params)

    def report(self, key: str, judgement: Judgement) -> None:
        """Store an answer with the study."""
        self._study.set_user_attr(f"{JUDGEMENT}{key}", as_value(judgement))

    def withdraw(self, key: str) -> None:
        """Take an answer back."""
        self._study.set_user_attr(f"{JUDGEMENT}{key}", None)
