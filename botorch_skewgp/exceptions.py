"""Warnings and errors of this package. All derive from BoTorch's, so that BoTorch's filters and handlers see them."""

from botorch.exceptions.errors import BotorchError, CandidateGenerationError, InputDataError
from botorch.exceptions.errors import UnsupportedError as UnsupportedError
from botorch.exceptions.warnings import BotorchWarning
from torch import Tensor


class ContradictionError(InputDataError, ValueError):
    """Rows without noise cannot hold together, or leave nothing unknown that could be drawn."""


class UnknownKindError(InputDataError, KeyError):
    """No part of a model predicts observations of a kind."""

    def __str__(self) -> str:
        return str(self.args[0])  # not quoted, as a key would be


class NoSafePointError(CandidateGenerationError):
    """A search found no point of which the model is sure enough that it is safe.

    Args:
        message: What was wanted, and what to do.
        point: The surest point found, `d`; `None` if none satisfies the other constraints.
        confidence: How sure the model is of it.
    """

    def __init__(self, message: str, point: Tensor | None = None, confidence: float = 0.0) -> None:
        super().__init__(message)
        self.point, self.confidence = point, confidence


class SamplingError(BotorchError, RuntimeError):
    """A sampler cannot go on: the rows leave it no room, or rounding takes it out of their bounds."""


class TooManyReflectionsError(SamplingError):
    """A trajectory had more reflections than is plausible, or affordable where bounds are close together."""


class SkewGPWarning(BotorchWarning):
    """Base class of every warning that this package issues."""


class ConvergenceWarning(SkewGPWarning):
    """Expectation propagation stopped before it reached its fixed point."""


class PoorDrawsWarning(SkewGPWarning):
    """The draws of a truncated normal are fewer, or mix worse, than what was asked for."""


class CompetingExplanationsWarning(SkewGPWarning):
    """Several explanations of answers that may be slips are likely, and expectation propagation stands for one."""


class LargeCorrectionWarning(SkewGPWarning):
    """A perturbative correction is not small, so that what it leaves out need not be small either."""


class ContradictionWarning(SkewGPWarning):
    """What is said with little noise is all but excluded by the kernel, so that the jitter decides what comes out."""


class VacuousBoundWarning(SkewGPWarning):
    """A lower bound of a probability is not positive, hence no bound at all."""


class QuadratureWarning(SkewGPWarning):
    """Nodes of an integral over hyperparameters are too few, of negative weight, or left out."""


class UndecidedRecommendationWarning(SkewGPWarning):
    """No comparisons link the recommended point to another that is about as likely to be better."""


class FewAnswersWarning(SkewGPWarning):
    """A claim of safety, or a threshold, from few answers and one set of hyperparameters, which claims too much."""


class UninformedFitWarning(SkewGPWarning):
    """The evidence of a fit is no better than that of a predictor which ignores the points."""


class OneClassWarning(FewAnswersWarning):
    """All labels are of one class: fitted hyperparameters take the limit to be further away than it is."""
