"""Checks of posteriors before closed forms use them."""

from __future__ import annotations

from botorch.exceptions.errors import UnsupportedError
from botorch.posteriors import Posterior


def check_one_value(posterior: Posterior, user: str) -> None:
    r"""Refuse posteriors over more than one value.

    Args:
        posterior: A posterior.
        user: The caller's name, for the error message.

    Raises:
        UnsupportedError: If the posterior is not over one value.
    """
    shape = tuple(posterior._extended_shape())
    if shape[-2:] != (1, 1):
        raise UnsupportedError(
            f"{user} needs the posterior of one value; got one of shape {shape}. For input transforms that turn one "
            "point into many, give a posterior_transform that reduces them to one."
        )
