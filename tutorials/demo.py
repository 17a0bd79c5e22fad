"""Find the best point from duels alone: preferential Bayesian optimisation with a skew Gaussian process.

A simulated judge is shown two points and says which one it likes better; there are no numbers. Each round compares the
two points whose better one is expected to be best, learns from the answer, and carries on. The last lines tell how good
the recommended point truly is and how many duels it took to get that near, and
a picture shows what the model has learned.

    python tutorials/demo.py                        # the six-hump camel with its two best points, 2 inputs, 40 duels
    python tutorials/demo.py --function hartmann6   # 6 inputs, 100 duels
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms.input import Normalize
from botorch.test_functions.synthetic import Hartmann, SixHumpCamel, SyntheticTestFunction
from botorch.utils.sampling import draw_sobol_samples
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import next_pair, recommend
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference
from botorch_skewgp.plots import plot_map, plot_slices

CAMEL_BOUNDS = [(-2.0, 2.0), (-1.0, 1.0)]  # without the steep walls, beside which the humps would be small
FUNCTIONS = {
    "camel": (lambda: SixHumpCamel(negate=True, bounds=CAMEL_BOUNDS), 40),
    "hartmann6": (lambda: Hartmann(negate=True), 100),
}


@dataclass
class Judge:
    """Prefers the point whose utility, seen with noise, is the larger."""

    utility: SyntheticTestFunction
    noise: float
    generator: torch.Generator

    def duel(self, points: Tensor) -> int:
        """0 if the first row of a `2 x d` tensor wins, and 1 if the second does."""
        noise = self.noise * torch.randn(2, generator=self.generator, dtype=points.dtype)
        return int((self.utility(points) + noise).argmax())


@dataclass
class Duels:
    """The points that have been shown, and who won: rows of `points`, winner first."""

    points: Tensor
    pairs: Tensor

    def add(self, rows: tuple[int, int], winner: int) -> None:
        """Note that, of two rows, the one at position `winner` won."""
        pair = torch.tensor([[rows[winner], rows[1 - winner]]])
        self.pairs = torch.cat([self.pairs, pair])


def fit(duels: Duels, bounds: Tensor, previous: SkewGP | None) -> SkewGP:
    """Fit the model of all duels so far; its hyperparameters start from those of the previous one."""
    model = SkewGP(
        duels.points,
        Preference(duels.pairs),
        input_transform=Normalize(d=duels.points.shape[-1], bounds=bounds),
    )
    if previous is not None:
        model.load_state_dict(previous.state_dict())
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    return model.eval()


def run(utility: SyntheticTestFunction, num_duels: int, noise: float, seed: int) -> tuple[SkewGP, Tensor, list[float]]:
    """Hold the duels; returns the last model, the recommended point, and the regret after each of the chosen duels."""
    torch.manual_seed(seed)  # next_pair draws from torch's global generator
    bounds, d = utility.bounds, utility.dim
    spread = utility(draw_sobol_samples(bounds, n=1024, q=1, seed=seed).squeeze(-2)).std().item()
    judge = Judge(utility, noise * spread, torch.Generator().manual_seed(seed))

    # The first duels are random: 2 d + 2 of them, each between two new points.
    num_initial = min(2 * d + 2, num_duels)
    points = draw_sobol_samples(bounds, n=num_initial, q=2, seed=seed)
    duels = Duels(points.reshape(-1, d), torch.empty(0, 2, dtype=torch.long))
    for i, pair in enumerate(points):
        duels.add((2 * i, 2 * i + 1), judge.duel(pair))
    model = fit(duels, bounds, previous=None)
    best = recommend(model)[0].squeeze(0)
    regrets = [regret(utility, best)]

    for count in range(num_initial + 1, num_duels + 1):
        pair, _ = next_pair(model, bounds, num_restarts=4, raw_samples=128)
        duels.points = torch.cat([duels.points, pair])
        duels.add((len(duels.points) - 2, len(duels.points) - 1), judge.duel(pair))

        model = fit(duels, bounds, previous=model)
        best = recommend(model)[0].squeeze(0)
        regrets.append(regret(utility, best))
        if count % 10 == 0:
            print(f"{count:4d} duels: {describe(utility, best)}")
    return model, best, regrets


def regret(utility: SyntheticTestFunction, point: Tensor) -> float:
    """How much better the best point is, which only the judge could know."""
    return utility.optimal_value - utility(point.unsqueeze(0)).item()


def duels_to_reach(regrets: list[float], num_duels: int) -> str:
    """After how many duels the recommended point was, and stayed, within some regrets."""
    first = num_duels - len(regrets) + 1
    reached = []
    for level in (1.0, 0.1, 0.01):
        beyond = [i for i, value in enumerate(regrets) if value > level]
        needed = first + (beyond[-1] + 1 if beyond else 0)
        reached.append(f"{level:g}: {needed if needed <= num_duels else 'not yet'}")
    return "Duels until the regret stayed below " + ", ".join(reached)


def describe(utility: SyntheticTestFunction, point: Tensor) -> str:
    """True value and regret of a point."""
    value = utility(point.unsqueeze(0)).item()
    return f"true value of the recommended point {value:9.5f}, regret {regret(utility, point):.5f}"


def cannot_write(picture: Path) -> str | None:
    """Why a picture cannot be written to a path, better known before the duels than after; `None` if it can."""
    endings = sorted(FigureCanvasAgg.get_supported_filetypes())
    if picture.suffix.removeprefix(".").lower() not in endings:
        return f"{picture} must end in one of {', '.join(endings)}, such as {picture.with_suffix('.png')}"
    is_new = not picture.exists()
    try:
        picture.open("ab").close()
    except OSError as error:
        return f"{picture} cannot be written: {error.strerror}"
    if is_new:
        picture.unlink()
    return None


def main() -> None:
    """Read the command line, hold the duels, report, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--function", choices=sorted(FUNCTIONS), default="camel", help="what the judge likes")
    parser.add_argument("--duels", type=int, help="number of duels (default: 40 for camel, 100 for hartmann6)")
    parser.add_argument(
        "--noise",
        type=float,
        default=0.01,
        help="standard deviation of the judge's noise on each point, relative to that of the function (default: 0.01)",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="where the picture goes (default: demo-FUNCTION.png)")
    options = parser.parse_args()
    function, default_duels = FUNCTIONS[options.function]
    num_duels = default_duels if options.duels is None else options.duels
    output = options.output or Path(f"demo-{options.function}.png")
    if num_duels < 1:
        parser.error(f"--duels must be at least 1; got {num_duels}")
    if not 0 <= options.noise < math.inf:
        parser.error(f"--noise must be a finite number that is not negative; got {options.noise}")
    if not 0 <= options.seed < 2**31:
        parser.error(f"--seed must be from 0 to 2147483647; got {options.seed}")
    if problem := cannot_write(output):
        parser.error(f"--output: {problem}")

    torch.set_num_threads(1)  # the matrices are small: more threads would wait for each other
    utility = function()
    model, point, regrets = run(utility, num_duels, options.noise, options.seed)
    coordinates = ", ".join(f"{x:.4f}" for x in point.tolist())
    print(f"After {num_duels} duels: recommended ({coordinates})")
    print(f"{describe(utility, point)} (best possible: {utility.optimal_value:.5f})")
    print(duels_to_reach(regrets, num_duels))

    if utility.dim == 2:
        figure = Figure(figsize=(14, 3.8), dpi=120, layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        plot_map(model, utility.bounds, best=point, ax=left)
        plot_map(model, utility.bounds, "width", ax=middle)
        right.semilogy(range(num_duels - len(regrets) + 1, num_duels + 1), [max(value, 1e-6) for value in regrets])
        right.set(title="Progress", xlabel="duels", ylabel="regret of the recommended point")
    else:
        figure = plot_slices(model, utility.bounds, point)[0].figure
    figure.savefig(output)
    print(f"Picture: {output}")


if __name__ == "__main__":
    main()
