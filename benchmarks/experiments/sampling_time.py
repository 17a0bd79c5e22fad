"""Time and convergence of draws for up to 4,500 labels (unified framework paper, figure 8).

Labels of a probit model in three dimensions, with the paper's generator: normal inputs, variance from U[1, 10],
lengthscales from U[0.1, 1.1], all of which the methods know. A trial is a data set.

- `SkewGP`: 3,000 draws of four chains as the library makes them, which it runs on until R-hat is below 1.01.
- `LIN-ESS`: the paper's sampler and number of draws: 3,100 steps of which 100 are dropped, here of four chains side by
  side, which one chain would take about as long for.
- `elliptical slice`: that sampler around the prior, as many steps; `HMC`: 3,000 draws of four chains of numpyro's NUTS,
  each of which adapts its step for 500 more. For up to 2,500 and 1,000 labels.
- `EP`: expectation propagation to its fixed point.
- `Laplace`: scikit-learn's classifier with hyperparameters as they are (a logistic link).

R-hat (the largest, split and rank-normalised) and the effective size (the least) are over twelve values of the latent
function given the rows, their mean square and their log likelihood. Times are of one thread of a processor.
"""

from __future__ import annotations

from benchmarks._problems import classification
from benchmarks._race import grid
from benchmarks.experiments._draws import size_experiment

METHODS = ("SkewGP", "LIN-ESS", "EP", "Laplace", "elliptical slice", "HMC")
NUM_DRAWS = 3000

EXPERIMENT = size_experiment(
    lambda n, seed: classification(n, seed=seed).distribution,
    NUM_DRAWS,
    grid(n=range(1000, 4501, 500)),
    METHODS,
    "sampling_time",
)
