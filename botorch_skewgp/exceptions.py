"""Warnings and errors of this package. All derive from BoTorch's, so that BoTorch's filters and handlers see them."""

from botorch.exceptions.warnings import BotorchWarning


class SkewGPWarning(BotorchWarning):
    """Base class of every warning that this package issues."""


class ConvergenceWarning(SkewGPWarning):
    """Expectation propagation stopped before it reached its fixed point."""


class PoorDrawsWarning(SkewGPWarning):
    """The draws of a truncated normal are fewer, or mix worse, than what was asked for."""


class VacuousBoundWarning(SkewGPWarning):
    """A lower bound of a probability is not positive, hence no bound at all."""


class QuadratureWarning(SkewGPWarning):
    """Nodes of an integral over hyperparameters are too few, of negative weight, or left out."""
