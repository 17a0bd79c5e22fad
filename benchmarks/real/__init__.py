"""Real answers: held-out log densities of people's choices, grades and readings, beside the fields' standard models.

Runs hold what was said of every answer: they lie beside the tables, and are not part of the project.
"""

from __future__ import annotations

import math
import resource
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks._observations import fitted
from benchmarks._process import apart, tell
from benchmarks._race import Cell, Group, Names, Race, Row, grid
from benchmarks.real import ours, rivals
from benchmarks.real.data import DATA, Answers, Readings, missing_wheels, split
from benchmarks.real.rivals import Predictions
from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Preference

NUM_FOLDS = {"known": 4, "new": 5}
FEW = 200  # answers to learn from, too few for one fold to say much
MOST_TESTED = 1000
LIMIT = 400.0  # seconds of the clock
BESIDE = {  # columns of differences in pairs, and the models that they are to: the first that there is
    ("behind_linear", "its_error"): ("conditional logit", "cumulative link", "normal regression"),
    ("behind_people", "people_error"): (
        "mixed logit", "graded response, five factors", "cumulative link, people's slopes", "cumulative link, people",
    ),
    ("behind_boosting", "boosting_error"): ("boosting",),
}  # fmt: skip
BINS = 10
FEWEST_PEOPLE = 5  # to cluster by


class Model(NamedTuple):
    """How predictions are made, of which kinds of data or data sets, and whether from all answers or from some."""

    predict: Callable[..., Predictions]
    of: tuple[str, ...]
    parts: tuple[str, ...] = ("some", "all")


CHOICES, GRADES, PEOPLE = ("panel", "choices", "pairs"), ("grades", "labels"), ("panel", "grades")
EVERY, DUELS = (*CHOICES, *GRADES, "readings"), ("Train", "pairs")
SOME, ALL = ("some",), ("all",)
MODELS = {
    "conditional logit": Model(rivals.conditional_logit, CHOICES),
    "mixed logit": Model(lambda known, test: rivals.fit_mixed_logit(known).predict(test), ("panel",)),
    "boosting": Model(rivals.boosting, (*CHOICES, *GRADES)),
    "cumulative link": Model(rivals.cumulative_link, GRADES),
    "cumulative link, people": Model(rivals.mixed_cumulative_link, ("grades",)),
    "cumulative link, people's slopes": Model(partial(rivals.mixed_cumulative_link, slopes=True), ("soup",)),
    "cumulative link, people's stretches": Model(
        lambda known, test: rivals.fit_stretched_cumulative_link(known).predict(test), ("grades",)
    ),
    "graded response, five factors": Model(
        lambda known, test: rivals.fit_graded_response(known).predict(test), ("VerbAgg", "bfi")
    ),
    "normal regression": Model(rivals.normal_regression, ("readings",)),
    "SkewGP, EP": Model(ours.skew_gp, EVERY, SOME),
    "SkewGP, exact": Model(partial(ours.skew_gp, approximation=None), EVERY, SOME),
    "SkewGP, linear + RBF, EP": Model(ours.skew_gp_of_recipe, EVERY, SOME),
    "SkewGP, all answers, EP": Model(partial(ours.skew_gp, inducing=True), EVERY, ALL),
    "SkewGP, all answers, linear + RBF, EP": Model(partial(ours.panel, by_person=False), EVERY, ALL),
    "SkewGP, judges, EP": Model(partial(ours.skew_gp, inducing=True, by_person=True), PEOPLE, ALL),
    "SkewGP, panel, EP": Model(ours.panel, PEOPLE, ALL),
    "PairwiseGP": Model(ours.pairwise_gp, DUELS, SOME),
    "SVGP": Model(ours.svgp, (*DUELS, "rat")),
    "psytrack": Model(rivals.psytrack, ("rat",)),
}


def is_asked(name: str, split: str, part: str, model: str, fold: int) -> bool:
    """Whether a model is of such data, and learns from such a part of them in this fold: of few people in all folds."""
    source, entry = DATA[name], MODELS[model]
    if not {name, source.kind} & {*entry.of}:
        return False
    some = source.size is not None and source.size < len(_parts(name, split, fold, None)[0])
    if (entry.parts == ALL or not some) if part == "some" else (entry.parts == SOME and some):
        return False
    few = source.all_folds or (split == "new" and part == "all") or (part == "some" and (source.size or 0) <= FEW)
    return fold < (NUM_FOLDS[split] if few and split in NUM_FOLDS else 1)


_answers = cache(lambda name: DATA[name].answers())


def _parts(name: str, way: str, fold: int, size: int | None) -> tuple[Answers, Answers]:
    """Training and test answers; the same ones for all models."""
    generator, answers = torch.Generator().manual_seed(fold), _answers(name)
    known, test = (answers.take(which) for which in split(way, answers.person, fold))
    test = test.take(torch.randperm(len(test), generator=generator)[:MOST_TESTED])
    if size is not None and size < len(known):
        known = known.take(torch.randperm(len(known), generator=generator)[:size])
    return known, test


def measure(name: str, split: str, model: str, fold: int, size: int | None) -> dict[str, Any]:
    """One model on one fold: log densities, seconds, memory, and what it said of outcomes."""
    warnings.simplefilter("ignore")
    known, test = _parts(name, split, fold, size)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    predictions = MODELS[model].predict(known, test)
    seconds = time.perf_counter() - began
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / 1e6
    log_density = predictions.log_density.double()
    if not bool(log_density.isfinite().all()):
        raise ValueError(f"{int((~log_density.isfinite()).sum())} of {len(log_density)} log densities are not finite.")
    found: dict[str, Any] = {"seconds": seconds, "peak_mb": peak}
    found |= {"log_density": _text(log_density, ".5f"), "person": _text(test.person, "d")}
    if predictions.probabilities is not None:
        assert not isinstance(test, Readings)
        found["right"] = int((predictions.probabilities.argmax(-1) == test.answer).sum())
        found |= {"said": _text(predictions.probabilities.flatten(), ".4f"), "answers": _text(test.answer, "d")}
    return found


def _text(values: Tensor, form: str) -> str:
    return " ".join(format(value, form) for value in values.tolist())


def _run(data: str, split: str, part: str, model: str, seed: int) -> dict[str, Cell] | list[Names]:
    if missing := missing_wheels():
        raise ModuleNotFoundError(f"Install {', '.join(missing)}: docs/real_data.md says how.")
    if not is_asked(data, split, part, model, seed):
        return []
    size = DATA[data].size if part == "some" else None
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
    first = runs.rows[0]
    row: dict[str, Cell] = {
        "kind": DATA[str(runs.names["data"])].kind,
        "learnt": int(first["learnt"]),
        "folds": len(runs),
    }
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


CASES = [
    {"data": name, "split": split, "part": part}
    for name, source in DATA.items() for split in source.splits for part in ("some", "all")
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
    answers = DATA[data].answers().take(torch.arange(number))
    points, index = ours.scaled(answers, answers)[0].flatten(0, 1).unique(dim=0, return_inverse=True)
    (entry,) = ours.observations_of(answers)
    field = "pairs" if isinstance(entry, Preference) else "options"
    options = getattr(entry, field)
    used, place = index[options.clamp(min=0)].where(options >= 0, -1).unique(return_inverse=True)
    points, place = points[used[used >= 0]], place - int((used < 0).any())
    judge = answers.person.unique(return_inverse=True)[1] if judges else None
    entry = replace(entry, **{field: place}, judge=judge)
    inducing = {"inducing_points": ours.some_of(points)} if with_inducing else {}
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {"points": len(points)}
    model = SkewGP(points, entry, **inducing)

    def done(name: str, began: float) -> None:
        found[name] = time.process_time() - began
        found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        tell(found)

    if not judges:  # what is loaded or compiled on first use
        small = SkewGP(points[:4], replace(entry, **{field: torch.arange(place.shape[-1]).unsqueeze(0) % 4}))
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
    Race("real_seconds", AT_SIZE, [{}], range(1), lambda case, seed, **names: {
        "why": "", **apart(measure_at_size, *(names[part] for part in PARTS_AT_SIZE), limit=LIMIT_AT_SIZE)
    }, SECONDS, notes=NOTES_AT_SIZE),
)  # fmt: skip
