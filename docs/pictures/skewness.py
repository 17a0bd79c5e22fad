"""The picture of README.md: by how much is the winner of a duel better? `python docs/pictures/skewness.py` draws it.

The seven duels of the preference paper (Benavoli, Azzimonti, Piga, GECCO 2021, section 3) with its lengthscale of 0.35,
in units of the judge's noise on one item, in which the latent function has variance 100. The truth is drawn: functions
of the prior with which all seven duels come out as they did.
"""

from __future__ import annotations

from pathlib import Path

import torch
from botorch.models.pairwise_gp import PairwiseGP
from gpytorch.kernels import RBFKernel, ScaleKernel
from matplotlib.figure import Figure
from torch.distributions import Normal

from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Preference
from botorch_skewgp.plots import COLORS
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation

WINNERS = torch.tensor([1.25, -1.23, 0.18, 0.18, -2.52, -1.80, -1.80], dtype=torch.double)
LOSERS = torch.tensor([-1.80, 1.25, -1.23, -2.52, 2.18, -0.50, 0.67], dtype=torch.double)
DUEL = 5  # -1.80 beat -0.50


def kernel() -> ScaleKernel:
    """The paper's."""
    covar_module = ScaleKernel(RBFKernel()).double()
    covar_module.outputscale, covar_module.base_kernel.lengthscale = 100.0, 0.35
    return covar_module


@torch.no_grad()
def draw() -> Figure:
    """The picture."""
    points, rows = torch.cat([WINNERS, LOSERS]).unique(return_inverse=True)
    X, pairs = points.unsqueeze(-1), rows.view(2, -1).T
    model = SkewGP(X, Preference(pairs), covar_module=kernel()).eval()
    laplace = PairwiseGP(X, pairs, covar_module=kernel()).eval().posterior(X[pairs[DUEL]])
    ep = expectation_propagation(model.row_model(model.forward(X)).truncated_normal)

    generator, root = torch.Generator().manual_seed(0), torch.linalg.cholesky(kernel()(X).to_dense())
    kept = []
    for _ in range(32):
        f = torch.randn(2**19, len(X), generator=generator, dtype=torch.double) @ root.T
        difference = f[:, pairs[:, 0]] - f[:, pairs[:, 1]]
        noise = 2**0.5 * torch.randn(difference.shape, generator=generator, dtype=torch.double)
        kept.append(difference[(difference + noise > 0).all(-1), DUEL])

    value = torch.linspace(-12, 27, 400, dtype=torch.double)
    contrast = torch.tensor([1.0, -1.0], dtype=torch.double)
    skewed = model.posterior(X[pairs[DUEL]]).affine(contrast.unsqueeze(0))
    mean = contrast @ laplace.mean.squeeze(-1)
    variance = contrast @ laplace.distribution.covariance_matrix @ contrast
    curves = {
        "SkewGP": torch.stack([skewed.density(v).squeeze() for v in value]),
        "Laplace (PairwiseGP)": Normal(mean, variance.sqrt()).log_prob(value).exp(),
        "EP, nearly the Gaussian\nof equal moments": Normal(ep.mean[DUEL], ep.variance[DUEL].sqrt())
        .log_prob(value)
        .exp(),
    }
    figure = Figure(figsize=(7.0, 3.0), dpi=130, layout="constrained")
    ax = figure.subplots()
    ax.hist(torch.cat(kept).numpy(), bins=70, density=True, color="0.86", label="truth (drawn)")
    for (label, density), color, style in zip(curves.items(), COLORS, ("-", "--", "-."), strict=False):
        ax.plot(value, density, color=color, linestyle=style, label=label)
    ax.axvline(0, color="0.4", linewidth=0.8)
    ax.set(xlim=(-12, 27), yticks=[], ylabel="density")
    ax.set_xlabel("utility of a duel's winner less that of its loser (unit: noise of one answer)")
    ax.spines[["left", "right", "top"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small")
    wrong = {label: float(density[value < 0].sum() * (value[1] - value[0])) for label, density in curves.items()}
    print(
        "probability that the winner is the worse one:", wrong, "truth:", float((torch.cat(kept) < 0).double().mean())
    )
    return figure


if __name__ == "__main__":
    draw().savefig(Path(__file__).with_suffix(".png"))
