"""One run of AEPsych's defaults, in an environment of its own: `python -m benchmarks._threshold_aepsych ...`.

Prints thresholds and the ends of their bands, from joint draws of its posterior, as a line of JSON.
"""

from __future__ import annotations

import json
import sys
import warnings

import torch
from aepsych.config import Config  # type: ignore[import-not-found]
from aepsych.strategy import SequentialStrategy  # type: ignore[import-not-found]

from benchmarks._threshold_problem import AT, BAND, FIRST, LEVEL, TRIALS, Observer

CONFIGURATION = f"""
[common]
parnames = [frequency, level]
stimuli_per_trial = 1
outcome_types = [binary]
target = {LEVEL}
strategy_names = [first, rest]

[frequency]
par_type = continuous
lower_bound = 0
upper_bound = 1

[level]
par_type = continuous
lower_bound = 0
upper_bound = 1

[first]
generator = ManualGenerator
min_asks = {FIRST}

[ManualGenerator]
points = POINTS

[rest]
generator = OptimizeAcqfGenerator
min_asks = {TRIALS - FIRST}
model = GPClassificationModel

[OptimizeAcqfGenerator]
acqf = EAVC

[EAVC]
target = {LEVEL}
"""


def main(function: str, seed: str, guess: str, lapse: str) -> None:
    """Run it."""
    warnings.simplefilter("ignore")
    torch.manual_seed(int(seed))
    observer = Observer(function, int(seed), float(guess), float(lapse))
    configuration = CONFIGURATION.replace("POINTS", str(observer.sobol[:FIRST].tolist()))
    strategy = SequentialStrategy.from_config(Config(config_str=configuration))
    for trial in range(TRIALS):
        x = strategy.gen(1).reshape(1, 2)
        strategy.add_data(x, observer.answer(x.double(), trial).to(x))
    line = torch.linspace(0, 1, 129).to(x)
    grid = torch.stack(torch.meshgrid(AT.to(x), line, indexing="ij"), dim=-1)
    found = []
    for points in grid:
        probability = strategy.model.sample(points, 1024).reshape(1024, -1)
        probability = torch.special.ndtr(probability) if bool((probability < 0).any()) else probability
        above = probability >= LEVEL
        first = above.long().argmax(-1)
        at = torch.where(above.any(-1), line[first], torch.inf)
        at = torch.where(above[:, 0], -torch.inf, at).double()
        tail = (1 - BAND) / 2
        found.append(torch.quantile(at, torch.tensor([0.5, tail, 1 - tail]).to(at), interpolation="nearest"))
    print(json.dumps(torch.stack(found).mT.nan_to_num(2.0, 2.0, -1.0).tolist()))


if __name__ == "__main__":
    main(*sys.argv[1:])
