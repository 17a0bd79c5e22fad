"""The three pictures of use in README.md: `python docs/pictures/uses.py` draws them, in some minutes.

A duel loop (two settings are compared at a time, without numbers), trials that crash, and people who differ.
"""

from __future__ import annotations

from pathlib import Path

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms.outcome import Standardize
from botorch.optim import optimize_acqf
from botorch.utils.sampling import draw_sobol_samples
from matplotlib.figure import Figure
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import (
    SkewLogExpectedImprovement,
    ValidityWeightedAcquisitionFunction,
    next_pair,
    recommend,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Numeric, Observation, Preference, Validity
from botorch_skewgp.plots import COLORS, plot_map

SQUARE = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
SEARCH = {"num_restarts": 4, "raw_samples": 64}
BLACK, GREY = COLORS[-1], "0.6"


def fitted(X: Tensor, observations: Observation, **options: object) -> SkewGP:
    """A model with fitted hyperparameters."""
    model = SkewGP(X, observations, **options)  # type: ignore[arg-type]
    fit_gpytorch_mll(SkewGPMarginalLogLikelihood(model.likelihood, model))
    return model.eval()


def taste(X: Tensor) -> Tensor:
    """A person's utility without noise: two good regions, one better than the other."""
    first = torch.exp(-12 * (X - torch.tensor([0.72, 0.3])).square().sum(-1))
    return 6 * first + 4 * torch.exp(-15 * (X - torch.tensor([0.25, 0.75])).square().sum(-1))


def duel_loop(num_duels: int = 30) -> Figure:
    """Thirty duels between two settings each."""
    torch.manual_seed(1)
    X = draw_sobol_samples(SQUARE, n=6, q=2, seed=3).reshape(-1, 2)
    pairs = torch.empty(0, 2, dtype=torch.long)
    tastes: list[float] = []
    model: SkewGP | None = None
    while len(pairs) < num_duels:
        if model is None:
            rows = torch.tensor([2 * len(pairs), 2 * len(pairs) + 1])
        else:
            pair, _ = next_pair(model, SQUARE, **SEARCH)
            rows = torch.tensor([len(X), len(X) + 1])
            X = torch.cat([X, pair])
        answers = taste(X[rows]) + 0.3 * torch.randn(2, dtype=torch.double)
        pairs = torch.cat([pairs, rows[answers.argsort(descending=True)].unsqueeze(0)])
        if len(pairs) >= 6:
            model = fitted(X, Preference(pairs))
            best, _ = recommend(model)
            tastes.append(float(taste(best)))
    figure = Figure(figsize=(9.0, 3.4), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    plot_map(model, SQUARE, best=best, ax=left).set_title(f"{num_duels} duels, arrows to the losers", fontsize="medium")
    left.legend(fontsize="small", framealpha=0.85, loc="upper left")
    right.plot(range(6, num_duels + 1), [100 * value / 6 for value in tastes], color=COLORS[0], linewidth=1.8)
    right.axhline(100, color=GREY, linewidth=0.8, linestyle=":")
    right.set(
        xlabel="number of duels",
        ylabel="% of the best possible utility",
        ylim=(0, 105),
        title="The recommended setting",
    )
    right.title.set_fontsize("medium")
    right.spines[["top", "right"]].set_visible(False)
    return figure


def works(X: Tensor) -> Tensor:
    """Whether a trial gives a number."""
    return X[:, 1] + 0.35 * torch.sin(5 * X[:, 0]) < 0.75


def failures(num_trials: int = 24) -> Figure:
    """The best settings lie beside those that crash."""
    torch.manual_seed(0)

    def quality(X: Tensor) -> Tensor:
        return 10 - 20 * (X - torch.tensor([0.45, 0.75])).square().sum(-1)  # at its highest where trials crash

    X = draw_sobol_samples(SQUARE, n=6, q=1, seed=2).squeeze(-2)
    while True:
        ok = works(X)
        validity = fitted(X, Validity(ok))
        if len(X) == num_trials:
            break
        objective = fitted(X[ok], Numeric(quality(X[ok])), outcome_transform=Standardize(m=1))
        improvement = SkewLogExpectedImprovement(objective, best_f=quality(X[ok]).max())
        acquisition = ValidityWeightedAcquisitionFunction(improvement, validity)
        candidate, _ = optimize_acqf(acquisition, SQUARE, q=1, **SEARCH)
        X = torch.cat([X, candidate])
    figure = Figure(figsize=(9.0, 3.4), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    plot_map(validity, SQUARE, "valid", ax=left)
    left.set_title("Chance that a trial works", fontsize="medium")
    edge = torch.linspace(0, 1, 200, dtype=torch.double)
    left.plot(edge, (0.75 - 0.35 * torch.sin(5 * edge)).clamp(max=1.0), color="white", linestyle="--", linewidth=1)
    left.annotate("true edge", (0.06, 0.6), color="white", fontsize="small", rotation=-38)
    left.set_ylim(0, 1)
    best = torch.where(ok, quality(X), -torch.inf).cummax(0).values
    trials = torch.arange(1, num_trials + 1)
    right.plot(trials, best, color=COLORS[0], linewidth=1.8, label="best so far")
    right.plot(trials[ok], quality(X)[ok], linestyle="", marker="o", color=BLACK, markersize=4, label="worked")
    right.plot(
        trials[~ok], torch.zeros(int((~ok).sum())), linestyle="", marker="X", color=COLORS[1], label="crashed: no value"
    )
    right.set(xlabel="trial", ylabel="value", title="The best values lie at the edge")
    right.title.set_fontsize("medium")
    right.legend(frameon=False, fontsize="small", loc="lower right", bbox_to_anchor=(1.0, 0.08))
    right.spines[["top", "right"]].set_visible(False)
    return figure


def people(num_answers: int = 40) -> Figure:
    """Two people taste the same cups; the answers of one are partly informative about the other."""
    generator = torch.Generator().manual_seed(4)
    X = torch.linspace(0, 1, 21, dtype=torch.double).unsqueeze(-1)
    peaks = torch.tensor([0.35, 0.65])
    pairs = torch.stack([torch.randperm(21, generator=generator)[:2] for _ in range(num_answers)])
    judge = torch.arange(num_answers) % 2
    utility = -40 * (X[pairs].squeeze(-1) - peaks[judge].unsqueeze(-1)).square()
    said = utility + 0.7 * torch.randn(utility.shape, generator=generator, dtype=torch.double)
    model = fitted(X, Preference(pairs.gather(-1, said.argsort(-1, descending=True)), judge=judge))
    figure = Figure(figsize=(9.0, 2.9), dpi=130, layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    who = {"Ann": 0, "Bob": 1, "a new person": "new"}
    for panel, (name, number), peak in zip(panels, who.items(), (*peaks.tolist(), None), strict=True):
        plot_map(model.for_judge(number), SQUARE[:, :1], "win", reference=torch.tensor([0.5]), data=False, ax=panel)
        if peak is not None:
            panel.axvline(peak, color=COLORS[2], linewidth=1, label="true favourite")
        panel.set(title=name, xlabel="sugar", ylabel="chance of being preferred\nto sugar 0.5" if number == 0 else "")
        panel.title.set_fontsize("medium")
        panel.get_legend().remove()
    panels[0].legend(fontsize="small", frameon=False, loc="upper right")
    return figure


if __name__ == "__main__":
    for draw in (duel_loop, failures, people):  # some minutes
        draw().savefig(Path(__file__).parent / f"{draw.__name__}.png")
        print(f"{draw.__name__}.png")
