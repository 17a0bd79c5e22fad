r"""Claims from few answers: one set of hyperparameters is surer than these allow."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from botorch.models.model import Model
from torch.distributions import Bernoulli

from botorch_skewgp.exceptions import FewAnswersWarning
from botorch_skewgp.models.prior_model import PriorModel

SURE = 0.9  # the least probability that is a claim
ENOUGH_ANSWERS = 30  # from which on claims with fitted hyperparameters hold, `python -m benchmarks safety`


def warn_of_few_answers(model: Model) -> None:
    """Issue a `FewAnswersWarning` at a caller's line for one model of few answers with free parameters."""
    if not isinstance(model, PriorModel) or not any(parameter.requires_grad for parameter in model.parameters()):
        return
    if sum(entry.num_answers for entry in model.observations) >= ENOUGH_ANSWERS:
        return
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("botorch_skewgp."):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        "Probabilities from few answers and one set of hyperparameters are too near 0 and 1: of points said to work "
        "with .95, some .90 do. Average over sampled hyperparameters instead: "
        "ensemble = fit_fully_bayesian_skew_gp(fit_skew_gp(model), num_draws=16), in the place of the model.",
        FewAnswersWarning,
        stacklevel=level,
    )


def warn_of_sure_labels(model: PriorModel, distribution: Any) -> None:
    """Issue a `FewAnswersWarning` if a model of labels alone is sure of a label."""
    if not isinstance(distribution, Bernoulli) or not bool((distribution.probs > SURE).any()):
        return
    telling = [entry for entry in model.observations if entry.tells_values]
    if all(entry.points_per_observation == 1 and not entry.anchors_scale for entry in telling):
        warn_of_few_answers(model)
