"""Base class of posteriors that are not Gaussian."""

from __future__ import annotations

from typing import NoReturn

from botorch.posteriors import Posterior


class NonGaussianPosterior(Posterior):
    """A posterior that must not be taken for a Gaussian one.

    BoTorch asks a posterior for its `distribution` or its `mvn` where a formula or a list of models needs a Gaussian.
    """

    @property
    def distribution(self) -> NoReturn:
        """Raises an error, since BoTorch would treat it as Gaussian.

        Raises:
            AttributeError: Always.
        """
        message = (
            f"A {type(self).__name__} has no distribution that BoTorch could take for a Gaussian. Join models in a "
            "ModelList, not in a ModelListGP."
        )
        if hasattr(self, "moment_matched"):
            message += " Where a Gaussian is wanted, ask for moment_matched()."
        raise AttributeError(message)
