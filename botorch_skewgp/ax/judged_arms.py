"""The arms of an experiment on the page of `botorch_skewgp.judge`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from ax.api.client import Client

from botorch_skewgp.ax import comparisons, internals
from botorch_skewgp.ax.decisions import get_best_arm
from botorch_skewgp.hosts.records import Judgement


class JudgedArms:
    r"""The best arm of an experiment beside those of new trials, for `botorch_skewgp.judge.serve`. Answers are in the
    experiment too, with the judges' names, and complete the trials that they are about.

    Example::

        client.configure_optimization(objective="liking")
        client.set_generation_strategy(skewgp_generation_strategy())
        serve(JudgedArms(client, show=sound, path="experiment.json"), "answers.json")

    Args:
        client: The client of an experiment with one objective.
        show: A function of the parameters by name, whose result the page shows, as that of `judge.Designs`.
        path: The file in which Ax stores the experiment after each step, from which `Client.load_from_json_file` goes
            on; `None` with a database.

    Raises:
        UserInputError: If the client has no experiment, or one with several objectives.
    """

    def __init__(self, client: Client, show: Callable[..., Any], path: str | os.PathLike[str] | None = None) -> None:
        self._client, self._show, self._path = client, show, path
        comparisons.check_one_objective(internals.experiment_of(client))

    def __contains__(self, item: Any) -> bool:
        """Whether the experiment has an arm of this name."""
        return item in internals.experiment_of(self._client).arms_by_name

    def ask(self, num_shown: int, answers: Sequence[Judgement], pending: Sequence[Sequence[str]]) -> list[str]:
        """The best arm, as soon as there are answers, and those of new trials."""
        shown = [get_best_arm(self._client)[2]] if answers else []
        trials = self._client.get_next_trials(max_trials=num_shown - len(shown))
        self._save()
        known = internals.experiment_of(self._client).trials
        return shown + [known[index].arms[0].name for index in trials]

    def show(self, item: str) -> Any:
        """What the function returns of an arm."""
        return self._show(**internals.experiment_of(self._client).arms_by_name[item].parameters)

    def report(self, key: str, judgement: Judgement) -> None:
        """Store an answer with the experiment, and complete the trials that ran for it."""
        comparisons.keep_round(self._client, key, judgement)
        for index, trial in internals.experiment_of(self._client).trials.items():
            if trial.status.is_running and {arm.name for arm in trial.arms} <= {*judgement.items}:
                self._client.complete_trial(index)
        self._save()

    def withdraw(self, key: str) -> None:
        """Take an answer back."""
        comparisons.keep_round(self._client, key, None)
        self._save()

    def _save(self) -> None:
        if self._path is not None:
            self._client.save_to_json_file(os.fspath(self._path))
