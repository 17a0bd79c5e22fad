"""Real answers: held-out log densities of people's choices, grades and readings, beside the fields' standard models.

`docs/real_data.md` tells the protocol, and which wheels hold the data. Each model of each fold runs in a process of
its own. Runs hold what was said of every answer: they lie beside the tables, and are not part of the project.
"""

from __future__ import annotations

import math
import resource
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from benchmarks._observations import fitted
from benchmarks._process import apart, tell
from benchmarks._race import Cell, Group, Names, Race, Row, grid
from benchmarks.real.data import DATA, SPLITS, Answers, Choices, Grades, Readings, missing_wheels, mode_canada_pairs
from benchmarks.real.ours import JUDGES, MOST_POINTS, OURS, observations_of, pairwise_gp, scaled, svgp
from benchmarks.real.rivals import RIVALS, Predictions, psytrack
from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Choice, Preference

PAIRS = "ModeCanada, pairs"
KINDS = {  # what a table of the page holds: choices of a panel are those of people who chose more than once
    "panel": (
        "Train", "Electricity", "Swissmetro", "Swissmetro, all", "Yogurt", "Yogurt, habits", "Catsup", "Catsup, habits",
    ),
    "choices": ("ModeCanada", "Heating", "HC", "Car"),
    "grades": ("wine", "soup", "VerbAgg", "bfi"),
    "labels": ("rat",),
    "readings": ("Kakadu", "RainIbk", "Affairs", "NH4"),
    "pairs": (PAIRS,),
}  # fmt: skip
KIND = {name: kind for kind, names in KINDS.items() for name in names}
NUM_FOLDS = {"known": 4, "new": 5}
ALL_FOLDS = ("wine", "soup", "NH4", "HC", "Heating", "Affairs")  # too few answers for one fold to say much
FEW = 200  # answers to learn from, likewise
MOST_TESTED = 1000
LIMIT = 400.0  # seconds of the clock
# Answers of which a model of ours learns from a part: as many as it is fitted to within some minutes.
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
OTHERS: dict[str, Callable[..., Predictions]] = {
    **OURS, **JUDGES, "PairwiseGP": pairwise_gp, "SVGP": svgp, "psytrack": psytrack,
}  # fmt: skip
MODELS = dict.fromkeys([*(model for models in RIVALS.values() for model in models), *OTHERS])


def _suits(model: str, name: str) -> bool:
    """Whether a model is of such data; those of people where several answers are one person's."""
    answers = _answers(name)
    if model in RIVALS[type(answers)] or model in OURS or model in JUDGES:
        of_people = "people" in model or model in ("mixed logit", *JUDGES)
        if isinstance(answers, Grades) and ("slopes" in model and not answers.slopes):
            return False
        if model == "graded response, five factors":
            return isinstance(answers, Grades) and answers.item is not None
        return not of_people or KIND[name] in ("panel", "grades")
    is_pair = isinstance(answers, Choices) and answers.points.shape[1] == 2
    return {"PairwiseGP": is_pair, "SVGP": is_pair or name == "rat", "psytrack": name == "rat"}.get(model, False)


def _is_asked(name: str, split: str, part: str, model: str, fold: int) -> bool:
    """Rivals learn from all answers, and from as many as our models do; where people are few, in all folds."""
    size = SIZES.get(name)
    some = size is not None and size < len(_parts(name, split, fold, None)[0])
    from_all = "judges" in model or "panel" in model or "all answers" in model
    from_some = (model.startswith("SkewGP") and not from_all) or model == "PairwiseGP"
    if (part == "some" and (from_all or not some)) or (part == "all" and from_some and some):
        return False
    few = name in ALL_FOLDS or (split == "new" and part == "all") or (part == "some" and (size or 0) <= FEW)
    return fold < (NUM_FOLDS[split] if few and split in NUM_FOLDS else 1)


@cache
def _answers(name: str) -> Answers:
    return mode_canada_pairs()[0] if name == PAIRS else DATA[name]()


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
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    predictions = (RIVALS[type(known)] | OTHERS)[model](known, test)
    seconds = time.perf_counter() - began
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / 1e6
    log_density = predictions.log_density.double()
    if not bool(log_density.isfinite().all()):
        raise ValueError(f"{int((~log_density.isfinite()).sum())} of {len(log_density)} log densities are not finite.")
    found: dict[str, Any] = {"seconds": seconds, "peak_mb": peak}
    found |= {"log_density": _text(log_density, ".5f"), "person": _text(test.person, "d")}
    if predictions.probabilities is not None:
        assert not isinstance(test, Readings)
        answers = test.chosen if isinstance(test, Choices) else test.grades
        found["right"] = int((predictions.probabilities.argmax(-1) == answers).sum())
        found |= {"said": _text(predictions.probabilities.flatten(), ".4f"), "answers": _text(answers, "d")}
    return found


def _text(values: Tensor, form: str) -> str:
    return " ".join(format(value, form) for value in values.tolist())


def _run(data: str, split: str, part: str, model: str, seed: int) -> dict[str, Cell] | list[Names]:
    if missing := missing_wheels():
        raise ModuleNotFoundError(f"Install {', '.join(missing)}: docs/real_data.md says how.")
    if not _suits(model, data) or not _is_asked(data, split, part, model, seed):
        return []
    size = SIZES[data] if part == "some" else None
    learnt = len(_parts(data, split, seed, size)[0])
    return {"learnt": learnt, **apart(measure, data, split, model, seed, size, limit=LIMIT)}


# Tables


def clustered_error(values: Tensor, person: Tensor) -> float:
    """The standard error of a mean whose values depend on each other within a person; of fewer than five, plain."""
    people = person.unique(return_inverse=True)[1]
    if int(people.max()) + 1 < FEWEST_PEOPLE:
        people = torch.arange(len(values))
    sums = values.new_zeros(int(people.max()) + 1).index_add(0, people, values - values.mean())
    num = len(sums)
    return math.sqrt(float(sums.square().sum()) * num / max(num - 1, 1)) / len(values)


def _pooled(rows: Sequence[Row], field: str) -> Tensor:
    return torch.tensor([float(value) for row in rows for value in row[field].split()], dtype=torch.float64)


def _columns(runs: Group) -> dict[str, Cell]:
    """Of a data set, split, part and model."""
    first = runs.rows[0]
    row: dict[str, Cell] = {"kind": KIND[str(runs.names["data"])], "learnt": int(first["learnt"]), "folds": len(runs)}
    row |= {column: None for columns in BESIDE for column in columns}
    if failed := [run["why"] for run in runs.rows if run["why"]]:
        return {**row, "why": failed[0]}
    values, person = _pooled(runs.rows, "log_density"), _pooled(runs.rows, "person")
    row |= {"tested": len(values), "nats": -float(values.mean()), "error": clustered_error(values, person)}
    for (gap, error), models in BESIDE.items():
        pairs = next((pairs for model in models if (pairs := runs.pairs(model=model))), [])
        if len(pairs) == len(runs) and not any(other["why"] for _, other in pairs):
            ahead = _pooled([other for _, other in pairs], "log_density") - values
            row |= {gap: float(ahead.mean()), error: clustered_error(ahead, person)}
    accuracy = float(runs.values("right").sum() / len(values)) if first["right"] else None
    seconds, peak = runs.mean("seconds"), float(runs.values("peak_mb").max())
    return {**row, "accuracy": accuracy, "seconds": seconds, "peak_mb": peak, "why": ""}


def bins_of(rows: Sequence[Row]) -> list[dict[str, Cell]]:
    """Of each tenth of probabilities: how many, what was said, how often it came true, and the difference's error."""
    answers, person = _pooled(rows, "answers").long(), _pooled(rows, "person")
    said = torch.cat([_pooled([row], "said").view(len(row["answers"].split()), -1) for row in rows])
    true = torch.nn.functional.one_hot(answers, said.shape[-1]).to(said)
    available = said > 0  # an option that was not available has probability 0
    p, t, who = said[available], true[available], person.unsqueeze(-1).expand_as(said)[available]
    which = (p * BINS).long().clamp_max(BINS - 1)
    found: list[dict[str, Cell]] = []
    for number in which.unique().tolist():
        mine = which == number
        found.append({
            "bin": number, "outcomes": int(mine.sum()), "said": float(p[mine].mean()),
            "came_true": float(t[mine].mean()), "error": clustered_error((t - p)[mine], who[mine]),
        })  # fmt: skip
    return found


def _reliability(runs: Group) -> list[Names]:
    if not all(row["said"] for row in runs.rows):
        return []
    return [{"learnt": int(runs.rows[0]["learnt"]), **cells} for cells in bins_of(runs.rows)]


def _splits(name: str) -> tuple[str, ...]:
    """Where everybody answers once, new people are all there are; one rat has no people to hold out."""
    if name.startswith(("Yogurt", "Catsup")):
        return ("last",)
    return ("library's",) if name == PAIRS else ("known", "new")[: 2 if KIND[name] in ("panel", "grades") else 1]


CASES: list[Mapping[str, Cell]] = [
    {"data": name, "split": split, "part": part}
    for name in (*DATA, PAIRS) for split in _splits(name) for part in ("some", "all")
]  # fmt: skip


# Seconds at size: a fit, the posterior by expectation propagation, and exact draws

LIMIT_AT_SIZE = 300.0  # seconds of the clock
NUMBERS = (  # data, answers, whether there are inducing points and judges, the bar
    ("Electricity", 344, False, False, "draws 3"),
    ("Electricity", 538, False, False, "draws 10"),
    ("Electricity", 3225, False, False, "fit and draws 20"),
    ("Train", 2287, False, False, "fit and EP 20, draws 40"),
    ("Swissmetro", 6768, True, False, "fit and draws 60"),
    ("Train", 2287, True, True, "fit and EP 60, draws 180"),
    ("Electricity", 3225, True, True, "fit and EP 300, draws 900"),
    ("Swissmetro", 6768, True, True, "fit and EP 600, draws 1800"),
)


def measure_at_size(data: str, number: int, with_inducing: bool, judges: bool) -> dict[str, Any]:
    """Tell what has been found so far after each step."""
    answers = DATA[data]()
    assert isinstance(answers, Choices)
    answers = answers.take(torch.arange(number))
    points, index = scaled(answers, answers)[0].flatten(0, 1).unique(dim=0, return_inverse=True)
    entry = observations_of(answers)[0]
    assert isinstance(entry, Choice | Preference)
    options = entry.pairs if isinstance(entry, Preference) else entry.options
    used, place = index[options.clamp(min=0)].where(options >= 0, -1).unique(return_inverse=True)
    points, place = points[used[used >= 0]], place - int((used < 0).any())
    judge = answers.person.unique(return_inverse=True)[1] if judges else None
    entry = Preference(place, judge=judge) if isinstance(entry, Preference) else Choice(place, judge=judge)
    inducing = {"inducing_points": points if len(points) <= MOST_POINTS else MOST_POINTS} if with_inducing else {}
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {"points": len(points)}
    model = SkewGP(points, entry, **inducing)

    def done(name: str, began: float) -> None:
        found[name] = time.process_time() - began
        found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        tell(found)

    if not judges:  # what is loaded or compiled on first use
        small = SkewGP(points[:4], replace(entry, **{_field(entry): torch.arange(place.shape[-1]).unsqueeze(0) % 4}))
        small.posterior(points[:1])
    began = time.process_time()
    fitted(model)
    done("fit", began)
    asked = {"judge": 0} if judges else {}
    gaussian = SkewGP(points, entry, approximation="ep", **inducing)
    gaussian.load_state_dict(model.state_dict())
    with torch.no_grad():
        began = time.process_time()
        gaussian.posterior(points[:100], **asked).mean  # noqa: B018
        done("ep", began)
        del gaussian
        began = time.process_time()
        posterior = model.eval().posterior(points[:100], **asked)
        posterior.mean  # noqa: B018
    found |= {"sampler": model.draws.sampler, "effective": float(model.draws.effective_size.min())}
    found["evaluations"] = model.draws.num_evaluations * model.draws.thinning
    done("draws", began)
    return found


def _field(entry: Choice | Preference) -> str:
    return "pairs" if isinstance(entry, Preference) else "options"


def _run_at_size(case: str, seed: int, **names: Any) -> dict[str, Cell]:
    return {"why": "", **apart(measure_at_size, *(names[part] for part in PARTS_AT_SIZE), limit=LIMIT_AT_SIZE)}


PARTS_AT_SIZE = ("data", "answers", "inducing", "judges")
AT_SIZE = [
    {"case": f"{case[0]}, {case[1]}" + ", judges" * case[3], **dict(zip((*PARTS_AT_SIZE, "bar"), case, strict=True))}
    for case in NUMBERS
]
SECONDS = ("points", "fit", "ep", "draws", "sampler", "evaluations", "effective", "peak_mb", "why")
NOTES_AT_SIZE = [
    "seconds of processor time, in a process of one thread; peak_mb: of the whole process",
    "ep: the posterior by expectation propagation; draws: 2,048 exact ones and their posterior; evaluations: "
    "reflections, or proposals, for each draw that is kept",
]


RACES = (
    Race(
        "real", CASES, grid(model=MODELS), range(5), _run,
        ("learnt", "seconds", "peak_mb", "right", "why", "log_density", "person", "answers", "said"), _columns,
        ["each model in a process of one thread; folds are counted by the seed",
         "part: whether a model learnt from all answers that are not held out, or some",
         "nats: minus the mean log density of a held-out answer; error: its standard error, clustered by person",
         "behind_linear: nats over those of the field's linear model that learnt from the same answers, with the "
         "standard error of that difference; behind_people, behind_boosting: of its model of people, of boosting; "
         "seconds and peak_mb: of a fold, to fit and predict"],
        {"real_reliability": _reliability},
    ),
    Race("real_seconds", AT_SIZE, [{}], range(1), _run_at_size, SECONDS, notes=NOTES_AT_SIZE),
)  # fmt: skip
