r"""Draws and log likelihoods of a model for ArviZ.

.. [Vehtari2017] A. Vehtari, A. Gelman, J. Gabry. Practical Bayesian model evaluation using leave-one-out
   cross-validation and WAIC. Statistics and Computing 27, 2017.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_skewgp.checking.cross_validation import log_densities_by_draw
from botorch_skewgp.models.conditioning import draw_values
from botorch_skewgp.models.skew_gp import SkewGP

RAMP = 1e-9  # nats, from the first draw to the last: far above rounding, far below all errors


@torch.no_grad()
def to_arviz(model: SkewGP, seed: int = 0) -> Any:
    r"""A model's draws as ArviZ's `InferenceData`, for `az.summary`, `az.plot_trace`, `az.loo` and `az.compare`.

    - `posterior`: `f`, the function at the model's `datapoints`, in units of the outcome: `chain x draw x point`.
    - `log_likelihood`: `log_density`, that of each observation given each draw of all others, `chain x draw x answer`,
      in the order of `leave_one_out`. The noise of the observation itself is integrated out, so that the
      Pareto-smoothed importance sampling of `az.loo` ([Vehtari2017]_) needs little smoothing. Draws differ by 1e-9 nats
      at least: ArviZ's fit of a tail divides by its spread, which would be zero for answers that all draws are sure of.
    - `constant_data`: `X`, the points, and `observation`, the number of the observation object of each answer.

    Hyperparameters are fixed. Models compared by `az.compare` must have the same observations in the same order.

    Args:
        model: A model with one output and observations other than numbers.
        seed: The seed of the function's values given the draws.

    Returns:
        An `arviz.InferenceData`.

    Raises:
        ModuleNotFoundError: If ArviZ is not installed; its interface is that of versions below 1.0.
        UnsupportedError: If the model has no draws (numbers alone, or `approximation="ep"`), several outputs, or is a
            fantasy model.

    Example:
        >>> data = to_arviz(SkewGP(train_X, Preference(pairs)))
    """
    import arviz

    pointwise = log_densities_by_draw(model)
    if model.num_outputs != 1:
        raise UnsupportedError(f"to_arviz is for models with one output; this one has {model.num_outputs}.")
    if pointwise.is_exact:
        raise UnsupportedError("Numbers alone have no draws: their posterior is Gaussian. Use leave_one_out(model).")
    model = deepcopy(model).eval()
    draws = model.draws
    # the model's own mixture has draws in another order, not by chains
    mixture = model.row_model(model.forward(model.train_inputs[0])).representer_mixture(draws)
    _, values = draw_values(model.posterior_of_mixture(model.datapoints, mixture), 1, seed)
    values = model.outcome_scale.unstandardize(values)

    def by_chain(samples: Tensor) -> Any:
        return samples.unflatten(0, (draws.num_chains, -1)).cpu().numpy()

    ramp = torch.linspace(0, RAMP, len(pointwise.log_density)).to(pointwise.log_density).unsqueeze(-1)
    return arviz.from_dict(
        posterior={"f": by_chain(values.mT)},
        log_likelihood={"log_density": by_chain(pointwise.log_density - ramp)},
        constant_data={"X": model.datapoints.cpu().numpy(), "observation": pointwise.observation.cpu().numpy()},
        dims={"f": ["point"], "log_density": ["answer"], "X": ["point", "input"], "observation": ["answer"]},
    )
