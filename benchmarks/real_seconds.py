"""Seconds and memory of real choices at size: a fit, the posterior by expectation propagation, and exact draws.

The first answers of a data set, perhaps with who answered; with inducing points, of distinct options up to
`MOST_POINTS`. The bar is what was asked for, in seconds.
"""

from __future__ import annotations

import resource
import time
import warnings
from dataclasses import replace
from typing import Any

import torch

from benchmarks._observations import fitted
from benchmarks._process import apart, tell
from benchmarks._race import Cell, Race
from benchmarks.real.data import DATA, Choices
from benchmarks.real.ours import MOST_POINTS, observations_of, scaled
from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Choice, Preference

LIMIT = 300.0  # seconds of the clock
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


def measure(data: str, number: int, with_inducing: bool, judges: bool) -> dict[str, Any]:
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


def _run(case: str, seed: int, **names: Any) -> dict[str, Cell]:
    return {"why": "", **apart(measure, *(names[part] for part in PARTS), limit=LIMIT)}


PARTS = ("data", "answers", "inducing", "judges")
CASES = [{"case": f"{case[0]}, {case[1]}" + ", judges" * case[3], **dict(zip((*PARTS, "bar"), case, strict=True))}
         for case in NUMBERS]  # fmt: skip
MEASURES = ("points", "fit", "ep", "draws", "sampler", "evaluations", "effective", "peak_mb", "why")
NOTES = [
    "seconds of processor time, in a process of one thread; peak_mb: of the whole process",
    "ep: the posterior by expectation propagation; draws: 2,048 exact ones and their posterior; evaluations: "
    "reflections, or proposals, for each draw that is kept",
]
RACES = (Race("real_seconds", CASES, [{}], range(1), _run, MEASURES, notes=NOTES),)
