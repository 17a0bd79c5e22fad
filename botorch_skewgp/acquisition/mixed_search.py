"""How acquisition functions are searched where some inputs may only take certain values and others are free."""

from __future__ import annotations

from typing import Any

from botorch.acquisition.acquisition import AcquisitionFunction

LEAST_GAIN = 1e-3  # in nats, of a round


def mixed_search_options(acquisition: AcquisitionFunction) -> dict[str, Any]:
    r"""Options of `optimize_acqf_mixed_alternating`, which searches by turns in the discrete and the free inputs.

    From random points instead of maxima between the values, which lie together; up to 20 steps in the free inputs for
    BoTorch's eight; and of logarithms until a round gains less than a thousandth.

    Args:
        acquisition: The acquisition function.
    """
    options: dict[str, Any] = {"initialization_strategy": "random", "maxiter_continuous": 20}
    return options | ({"tol": LEAST_GAIN} if acquisition._log else {})
