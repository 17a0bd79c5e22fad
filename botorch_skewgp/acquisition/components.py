"""What closed forms of expectations need of a posterior: the components of one value's distribution."""

from __future__ import annotations

from typing import NamedTuple

from botorch.acquisition.analytic import AnalyticAcquisitionFunction, _log_ei_helper
from botorch.exceptions.errors import UnsupportedError
from botorch.posteriors import Posterior
from torch import Tensor

from botorch_skewgp.posteriors import NormalMixtureMarginals
from botorch_skewgp.posteriors.checks import check_one_value


def log_expected_improvement(gain: Tensor, standard_deviation: Tensor) -> Tensor:
    """`log E[max(g, 0)]` of normal variables `g`, given their means and standard deviations; elementwise."""
    return standard_deviation.log() + _log_ei_helper(gain / standard_deviation)


class Components(NamedTuple):
    r"""The normal components of a single value's distribution.

    Args:
        mean: Their means, `batch_shape x S`.
        standard_deviation: The standard deviation that they share, `batch_shape x 1`.
        log_probability: Their log probabilities, `S` or `batch_shape x S`.
    """

    mean: Tensor
    standard_deviation: Tensor
    log_probability: Tensor

    def gain(self, best_f: Tensor, maximize: bool) -> Tensor:
        """How much better every mean is than a best value that broadcasts with them, `batch_shape x S`."""
        gain = self.mean - best_f.to(self.mean)
        return gain if maximize else -gain

    def log_average(self, log_terms: Tensor) -> Tensor:
        """The logarithm of the average over components of terms given by their logarithms, `batch_shape`."""
        return (self.log_probability + log_terms).logsumexp(-1)

    def log_expected_improvement(self, best_f: Tensor, maximize: bool) -> Tensor:
        r"""`log E[max(f - best_f, 0)]`, or of `best_f - f`; `batch_shape`.

        `log sum_s p_s sd (phi(u_s) + u_s Phi(u_s))`, with `u_s` the gain of component `s` in standard deviations.

        Args:
            best_f: A best value for every component, or one for all; broadcasts with `batch_shape x S`.
            maximize: Whether large values are good.
        """
        return self.log_average(log_expected_improvement(self.gain(best_f, maximize), self.standard_deviation))


def components_of(posterior: Posterior, user: str) -> Components:
    r"""The components of a posterior over one value.

    Args:
        posterior: A posterior at one point with one output, whose `marginals` are mixtures of normal distributions.
        user: Who asks, for the error message.

    Raises:
        UnsupportedError: If the posterior is no such mixture, or not over one value.
    """
    marginals = getattr(posterior, "marginals", None)
    if not isinstance(marginals, NormalMixtureMarginals):
        raise UnsupportedError(
            f"{user} needs a model whose posterior is a mixture of normal distributions, such as a SkewGPPosterior; "
            f"got {type(posterior).__name__}. For normal posteriors BoTorch's analytic acquisition functions are exact."
        )
    check_one_value(posterior, user)
    means, standard_deviation = (parameter.squeeze(-2) for parameter in marginals.parameters)
    means = means.expand(*posterior.batch_shape, means.shape[-1])  # type: ignore[attr-defined]
    return Components(means, standard_deviation, posterior.log_probabilities)  # type: ignore[attr-defined]


class ComponentAcquisitionFunction(AnalyticAcquisitionFunction):
    """Base class of those that see the components of one value's distribution."""

    def _components(self, X: Tensor) -> Components:
        self.to(X)  # as BoTorch's analytic functions do
        posterior = self.model.posterior(X, posterior_transform=self.posterior_transform)
        return components_of(posterior, type(self).__name__)
