"""The page's rounds of trials and arms, whose answers are in the study or the experiment too."""

import functools

import optuna
import pytest
from ax.api.client import Client
from host_cases import SPACE, InAx, InOptuna

from botorch_skewgp.ax import JudgedArms, get_best_arm
from botorch_skewgp.ax.comparisons import recorded
from botorch_skewgp.judge import Rounds
from botorch_skewgp.optuna import JudgedTrials, get_best_trial
from botorch_skewgp.optuna.judgements import read_records


def show(x):
    return str(x)


class Optuna:
    """A study in a database."""

    def __init__(self, folder):
        storage = f"sqlite:///{folder}/study.db"
        sampler = InOptuna(startup=2).study.sampler
        self.study = optuna.create_study(storage=storage, study_name="s", sampler=sampler, load_if_exists=True)
        self.source = JudgedTrials(self.study, SPACE, show)

    def judgements(self):
        return read_records(self.study).judgements

    def best(self):
        return get_best_trial(self.study).params["x"]


class Ax:
    """An experiment in a file."""

    def __init__(self, folder):
        path = folder / "experiment.json"
        self.client = Client.load_from_json_file(str(path)) if path.exists() else InAx(startup=3, sign=1).client
        self.source = JudgedArms(self.client, show, path)

    def judgements(self):
        return recorded(self.client._experiment).judgements

    def best(self):
        return get_best_arm(self.client)[0]["x"]


@pytest.mark.parametrize("host", [Optuna, Ax])
def test_people_judge_trials_and_go_on_in_another_process(tmp_path, host):
    def answer(rounds, judge):
        number = rounds.open(judge)
        shown = [float(rounds.source.show(item)) for item in rounds.all[number].shown]
        best = min(shown, key=lambda x: abs(x - 0.7))
        rounds.answer(judge, number, shown.index(best) if abs(best - 0.7) < 0.3 else None)

    begin = functools.partial(host, tmp_path)
    made = begin()
    rounds = Rounds(made.source, tmp_path / "answers.json", num_shown=3)
    for judge in ("ann", "bob", "ann"):
        answer(rounds, judge)
    before = made.judgements()
    rounds.answer("ann", rounds.open("ann"), 0)
    assert len(made.judgements()) == 4
    rounds.undo("ann")
    assert made.judgements() == before
    assert {entry.judge for entry in before} == {"ann", "bob"}
    waiting = rounds.all[rounds.open("ann")].shown
    made = begin()
    rounds = Rounds(made.source, tmp_path / "answers.json", num_shown=3)
    assert rounds.all[rounds.open("ann")].shown == waiting
    assert [*map(repr, made.judgements())] == [*map(repr, before)]
    for _ in range(2):
        answer(rounds, "ann")
    told = {(entry.better, frozenset(entry.worse), entry.judge) for entry in made.judgements()}
    answered = [entry.judgement for entry in rounds.all if entry.is_answered]
    assert told == {(entry.better, frozenset(entry.worse), entry.judge) for entry in answered}
    assert abs(made.best() - 0.7) < 0.2
    for wrong in ("../x", -1, 999, None, True, "9_9"):
        assert wrong not in made.source
