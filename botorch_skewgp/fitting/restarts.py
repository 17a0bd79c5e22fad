r"""Fitting from several starts."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from copy import deepcopy
from typing import Any

import torch
from botorch.exceptions.errors import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.optim.utils import sample_all_priors
from gpytorch.mlls import MarginalLogLikelihood
from linear_operator.utils.errors import NotPSDError

from botorch_skewgp.checks import as_count, as_seed, check_class
from botorch_skewgp.fitting.spreads import few_deviations_fixed, learn_spreads
from botorch_skewgp.fitting.trivial import check_fit
from botorch_skewgp.likelihoods import RowLikelihood
from botorch_skewgp.likelihoods.defaults import SLIP_START
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models import SkewGP
from botorch_skewgp.seeding import seeded


def fit_skew_gp(
    model: SkewGP | MarginalLogLikelihood, num_restarts: int = 1, seed: int = 0, **kwargs: Any
) -> MarginalLogLikelihood:
    r"""Fit hyperparameters from several starts and keep the best.

    The first start is the model's present state; further ones are draws of the priors, for parameters that have one and
    require gradients.
    Where a rate of slips is learned, each fit goes on from one without slips: while the function is small beside the
    noise no answer looks like a slip, and a rate that comes near zero on the way stays there. For the same reason the
    fit with slips starts at a rate of 2 % or more.
    How much judges differ in a parameter of their own (reliability, width of ties, stretch of cut-points) is learned
    last, by the evidence of some spreads, each with a fit from where the last one ended; see `fitting.spreads`.

    Where the evidence is less than two nats above that of a predictor which ignores the points (coin tosses,
    frequencies, a normal distribution), an `UninformedFitWarning` tells what may help; and the scale of items without
    features is that with the best score of answers left out in fifths, among the fitted one and 3, 30 and 100.

    Example:
        >>> fit_skew_gp(model, num_restarts=4)

    Args:
        model: A model, which is fitted by its evidence by expectation propagation; or an objective.
        num_restarts: The number of starts.
        seed: The seed of the starts.
        kwargs: Arguments of `fit_gpytorch_mll`.

    Returns:
        The objective, in evaluation mode, with its model at the best hyperparameters found.

    Raises:
        ModelFittingError: If no start could be fitted.
        InputDataError: If `num_restarts` is not a positive integer, or another argument is of another class.
    """
    num_restarts, seed = as_count(num_restarts, "num_restarts", least=1), as_seed(seed)
    if not isinstance(model, MarginalLogLikelihood):
        check_class(model, "model", SkewGP)
    mll = model if isinstance(model, MarginalLogLikelihood) else SkewGPMarginalLogLikelihood(model.likelihood, model)

    def fit() -> None:
        if any(parameter.requires_grad for parameter in mll.parameters()):
            fit_gpytorch_mll(mll, **kwargs)

    initial = deepcopy(mll.state_dict())
    best_value, best_state = -math.inf, None
    with seeded(seed, mll.model.train_inputs[0].device), few_deviations_fixed(mll.model):
        for i in range(num_restarts):
            mll.load_state_dict(initial)
            if i > 0:
                fixed = [(p, p.detach().clone()) for p in mll.parameters() if not p.requires_grad]
                sample_all_priors(mll.model)
                for parameter, value in fixed:
                    parameter.data.copy_(value)
            try:
                _fit(mll, fit)
                with torch.no_grad():
                    value = float(mll.train()(mll.model(*mll.model.train_inputs), mll.model.train_targets))
            except (ModelFittingError, NotPSDError):  # a start that cannot be fitted is skipped
                continue
            if value > best_value:
                best_value, best_state = value, deepcopy(mll.state_dict())
    if best_state is None:
        raise ModelFittingError(
            "No start could be fitted. Check the data for contradictions, or fix some hyperparameters."
        )
    mll.load_state_dict(best_state)
    learn_spreads(mll.eval(), fit)
    mll.eval()
    if isinstance(mll.model, SkewGP):
        check_fit(mll.model)
    return mll


def _fit(mll: MarginalLogLikelihood, fit: Callable[[], None]) -> None:
    """Fit what is not fixed, first without slips if their rates are learned."""
    parts = mll.model.likelihood.modules()
    slipping = [part for part in parts if isinstance(part, RowLikelihood) and part.learns_slips]
    if slipping:
        with ExitStack() as stack:
            for part in slipping:
                stack.enter_context(part.without_slips())
            fit()
        for part in slipping:
            part.slip = part.slip.detach().clamp(min=SLIP_START)
    fit()
