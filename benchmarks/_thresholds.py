"""What thresholds are estimated of, with torch alone; and AEPsych's estimates, perhaps in another environment."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

LEVEL = 0.75
FIRST, TRIALS = 10, 80
BAND = 0.9
AT = torch.linspace(0.05, 0.95, 19, dtype=torch.double)  # frequencies at which thresholds are compared
RATES = {"audiogram": (0.5, 0.02), "ridge": (0.5, 0.02), "step": (0.05, 0.05), "ellipse": (0.5, 0.02)}  # guess, lapse
HALF_AXES = (0.35, 0.3)  # of the ellipse, within which answers are right


def true_threshold(function: str, frequency: Tensor, seed: int) -> Tensor:
    """The level at which the probability of a right answer is `LEVEL`."""
    if function == "audiogram":
        phase = 2 * math.pi * torch.rand(1, generator=torch.Generator().manual_seed(seed)).double()
        return 0.5 + 0.2 * torch.sin(5 * frequency + phase)
    if function == "step":
        return 0.25 + 0.5 * torch.sigmoid(15 * (frequency - 0.35 - 0.3 * (seed % 5) / 4))
    return 0.75 - 0.45 * (-((frequency - 0.2 - 0.6 * (seed % 7) / 6) / 0.25).square()).exp()


def slope(function: str, frequency: Tensor) -> Tensor:
    return 8 + 8 * frequency if function == "ridge" else torch.full_like(frequency, 10.0)


class Observer:
    """Someone who answers, right by guessing and wrong by lapses with some probabilities; of a seed all is random."""

    def __init__(self, function: str, seed: int, guess: float, lapse: float) -> None:
        self.function, self.seed, self.guess, self.lapse = function, seed, guess, lapse
        generator = torch.Generator().manual_seed(1000 + seed)
        self.uniform = torch.rand(TRIALS, generator=generator, dtype=torch.double)
        self.sobol = SobolEngine(2, scramble=True, seed=seed).draw(TRIALS, dtype=torch.double)
        self.random = torch.rand(TRIALS, 2, generator=generator, dtype=torch.double)
        self.at_level = torch.special.ndtri(torch.tensor((LEVEL - guess) / (1 - guess - lapse)).double())
        self.is_closed = function == "ellipse"
        self.centre = 0.45 + 0.1 * torch.rand(2, generator=torch.Generator().manual_seed(seed), dtype=torch.double)

    @property
    def at(self) -> Tensor:
        if not self.is_closed:
            return AT
        return self.centre[0] + HALF_AXES[0] * torch.linspace(-0.8, 0.8, 10, dtype=torch.double)

    def answer(self, X: Tensor, first: int) -> Tensor:
        """The answers at points, the first of which is trial number `first`."""
        if self.is_closed:
            radius = ((X - self.centre) / torch.tensor(HALF_AXES).to(X)).norm(dim=-1)
            latent = 4 * (1 - radius) + self.at_level
        else:
            above = X[:, 1] - true_threshold(self.function, X[:, 0], self.seed)
            latent = slope(self.function, X[:, 0]) * above + self.at_level
        p = self.guess + (1 - self.guess - self.lapse) * torch.special.ndtr(latent)
        return self.uniform[first : first + len(X)] < p

    @property
    def truth(self) -> Tensor:
        """The thresholds at `at`, of a closed curve from below and then from above."""
        if self.is_closed:
            half = HALF_AXES[1] * (1 - ((self.at - self.centre[0]) / HALF_AXES[0]).square()).sqrt()
            return torch.cat([self.centre[1] - half, self.centre[1] + half])
        return true_threshold(self.function, AT, self.seed)


UNIT = "par_type = continuous\nlower_bound = 0\nupper_bound = 1"
CONFIGURATION = f"""
[common]
parnames = [frequency, level]
stimuli_per_trial = 1
outcome_types = [binary]
target = {LEVEL}
strategy_names = [first, rest]

[frequency]
{UNIT}

[level]
{UNIT}

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


def aepsych(function: str, seed: int, guess: float, lapse: float) -> dict[str, Any]:
    """Thresholds and the ends of their bands, from joint draws of the posterior of AEPsych with its defaults."""
    from aepsych.config import Config  # type: ignore[import-not-found]
    from aepsych.strategy import SequentialStrategy  # type: ignore[import-not-found]

    torch.manual_seed(seed)
    observer = Observer(function, seed, guess, lapse)
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
    return {"estimates": torch.stack(found).mT.nan_to_num(2.0, 2.0, -1.0).tolist()}
