"""Find the best point from duels alone: preferential Bayesian optimisation with a skew Gaussian process.

A simulated judge is shown two points and says which one it likes better; nobody ever sees a number. Each round asks
for the duel in which the winner is expected to be best, learns from the answer, and carries on. The last lines tell how
good the recommended point truly is, and a picture shows what the model has learned.

    python tutorials/demo.py                        # the six-hump camel, 2 inputs, 40 duels
    python tutorials/demo.py --function hartmann6   # 6 inputs, 100 duels
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms.input import Normalize
from botorch.optim import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.test_functions.synthetic import Hartmann, SixHumpCamel, SyntheticTestFunction
from botorch.utils.sampling import draw_sobol_samples
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor
from tqdm import tqdm

from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Preference
from botorch_skewgp.plots import plot_duels, plot_interval_width, plot_skewness, plot_slices

FUNCTIONS = {"camel": (SixHumpCamel, 40), "hartmann6": (Hartmann, 100)}


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


def recommend(model: SkewGP, duels: Duels) -> int:
    """The row of the point with the largest posterior mean among those that have been shown."""
    with torch.no_grad():
        return int(model.posterior(duels.points).mean.argmax())


def next_duel(model: SkewGP, bounds: Tensor, incumbent: Tensor, seed: int) -> Tensor:
    """The point that, next to the incumbent, is expected to make the better winner."""
    acquisition = qExpectedUtilityOfBestOption(
        pref_model=model,
        sampler=SobolQMCNormalSampler(torch.Size([256]), seed=seed),
        X_pending=incumbent.unsqueeze(0),
    )
    candidate, _ = optimize_acqf(
        acquisition, bounds=bounds, q=1, num_restarts=4, raw_samples=128, options={"seed": seed, "maxiter": 50}
    )
    return candidate


def run(utility: SyntheticTestFunction, num_duels: int, noise: float, seed: int) -> tuple[SkewGP, Duels, int]:
    """Hold the duels; returns the last model, the duels, and the row of the recommended point."""
    torch.manual_seed(seed)  # optimize_acqf draws from torch's global generator
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
    best = recommend(model, duels)

    progress = tqdm(range(num_initial + 1, num_duels + 1), initial=num_initial, total=num_duels, desc="duels")
    for count in progress:
        incumbent = duels.points[best]
        challenger = next_duel(model, bounds, incumbent, seed=seed + count)
        duels.points = torch.cat([duels.points, challenger])
        rows = (best, len(duels.points) - 1)
        duels.add(rows, judge.duel(duels.points[list(rows)]))

        model = fit(duels, bounds, previous=model)
        best = recommend(model, duels)
        if count % 10 == 0:
            progress.write(f"{count:4d} duels: {describe(utility, duels.points[best])}")
    return model, duels, best


def describe(utility: SyntheticTestFunction, point: Tensor) -> str:
    """True value and regret of a point, which only the judge could know."""
    value = utility(point.unsqueeze(0)).item()
    return f"true value of the recommended point {value:9.5f}, regret {utility.optimal_value - value:.5f}"


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
    utility = function(negate=True)
    model, duels, best = run(utility, num_duels, options.noise, options.seed)
    point = duels.points[best]
    coordinates = ", ".join(f"{x:.4f}" for x in point.tolist())
    print(f"After {num_duels} duels: recommended ({coordinates})")
    print(f"{describe(utility, point)} (best possible: {utility.optimal_value:.5f})")

    if utility.dim == 2:
        figure = Figure(figsize=(14, 3.8), dpi=120, layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        plot_duels(model, utility.bounds, best=point, ax=left)
        plot_interval_width(model, utility.bounds, ax=middle)
        plot_skewness(model, utility.bounds, ax=right)
    else:
        figure = plot_slices(model, utility.bounds, point)[0].figure
    figure.savefig(output)
    print(f"Picture: {output}")


if __name__ == "__main__":
    main()
