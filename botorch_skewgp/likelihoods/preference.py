r"""The probit likelihood of comparisons between points: duels, ties, choices, rankings.

.. [Benavoli2021preferential] A. Benavoli, D. Azzimonti, D. Piga. Preferential Bayesian optimisation with skew Gaussian
   processes. GECCO 2021.
.. [Chu2005preference] W. Chu, Z. Ghahramani. Preference learning with Gaussian processes. ICML 2005.
.. [Thurstone1927law] L. L. Thurstone. A law of comparative judgment. Psychological Review 34, 1927.
"""

from __future__ import annotations

from typing import Any

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.constraints import Interval
from gpytorch.priors import LogNormalPrior, Prior
from torch import Tensor
from torch.distributions import Bernoulli, Categorical

from botorch_skewgp.likelihoods.base import (
    OutcomeScale,
    PositiveParameter,
    RowLikelihood,
    best_of,
    comparison_rows,
)
from botorch_skewgp.likelihoods.rows import FantasyRows, Rows
from botorch_skewgp.observations import Choice, Observation, Preference, Ranking, Tie
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.truncated.univariate import log_interval_probability, probit_logits


class PreferenceLikelihood(RowLikelihood):
    r"""`P(a beats b) = Phi((f(a) - f(b)) / sqrt(2 noise))`: each item's utility is read with its own noise.

    Only the ratio of the kernel's output scale to the noise can be learned from comparisons. The noise is therefore
    fixed at 1 unless told otherwise, as in the papers and in BoTorch's `PairwiseProbitLikelihood`, and the utility is
    measured in units of one item's noise standard deviation. The difference of two items has noise variance `2 noise`
    ([Chu2005preference]_, equation (4); [Benavoli2021preferential]_, equation (1)). In a choice or ranking each item's
    noise is drawn once ([Thurstone1927law]_), so that its comparisons have correlated noise.

    Args:
        noise: The variance of one item's noise, in squared units of the latent utility.
        learn_noise: Whether the noise is a parameter to fit. Sensible with a kernel of fixed output scale, or where
            numbers anchor the scale.
        noise_prior: A prior on the noise variance.
        noise_constraint: A constraint on the noise variance; positive by default.
        tie_width: The half-width of the interval of noisy differences that are called a tie.
        learn_tie_width: Whether the width of ties is a parameter to fit.
        tie_width_prior: A prior on the width of ties; by default LogNormal(-1, 1) for a learned one.
        ties_allowed: Whether the judge could have called a duel a tie. Then a win is a noisy difference beyond the
            width, so that the probabilities of a win, a loss and a tie add up to one. Choices and rankings force an
            answer and need no margin.
    """

    observation_types = (Preference, Tie, Choice, Ranking)
    noise = PositiveParameter()
    tie_width = PositiveParameter()

    def __init__(
        self,
        noise: float | Tensor = 1.0,
        learn_noise: bool = False,
        noise_prior: Prior | None = None,
        noise_constraint: Interval | None = None,
        tie_width: float | Tensor = 0.5,
        learn_tie_width: bool = False,
        tie_width_prior: Prior | None = None,
        ties_allowed: bool = False,
    ) -> None:
        super().__init__()
        self.ties_allowed = ties_allowed
        self._register_positive("noise", noise, learn_noise, noise_prior, noise_constraint)
        if tie_width_prior is None and learn_tie_width:
            tie_width_prior = LogNormalPrior(loc=-1.0, scale=1.0)
        self._register_positive("tie_width", tie_width, learn_tie_width, tie_width_prior, None)

    def rows(self, observation: Observation, like: Tensor, scale: OutcomeScale = OutcomeScale()) -> Rows:  # noqa: B008
        """One row `f(a) - f(b) + v_a - v_b` per comparison: positive, or within the width for a tie."""
        self._check_type(observation)
        if isinstance(observation, Choice):
            observation = observation.as_ranking()
        if isinstance(observation, Ranking):
            pairs, event = observation.comparisons()
            return comparison_rows(pairs, event, pairs, self.noise, like)
        assert isinstance(observation, Preference | Tie)
        pairs = observation.pairs.to(like.device)
        m = pairs.shape[0]
        zeros = like.new_zeros(m)
        infinite = torch.full_like(zeros, torch.inf)
        width = self.tie_width.to(like).expand(m)
        tie = isinstance(observation, Tie)
        margin = width if self.ties_allowed else zeros
        return Rows(
            index=pairs,
            coefficient=torch.tensor([1.0, -1.0]).to(like).expand(m, 2),
            bias=zeros,
            lower=-width if tie else margin,
            upper=width if tie else infinite,
            noise=2 * self.noise.to(like).expand(m),
        )

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> Bernoulli | Categorical:
        r"""The law of a new comparison.

        Args:
            function_samples: A `... x k` tensor of utilities of `k` items.

        Returns:
            For two items a Bernoulli distribution of shape `...`: whether the first beats the second; if ties are
            allowed, a categorical distribution over win, loss and tie. For more items, a categorical distribution:
            which one is best.
        """
        k = function_samples.shape[-1]
        if k < 2:
            raise InputDataError(
                "A comparison is between two or more items: function_samples must be ... x k with k of at least 2; got "
                f"{tuple(function_samples.shape)}."
            )
        if k == 2:
            difference = function_samples[..., 0] - function_samples[..., 1]
            sd, width = (2 * self.noise.squeeze(-1)).sqrt(), self.tie_width.squeeze(-1)
            if not self.ties_allowed:
                return Bernoulli(logits=probit_logits(difference / sd))
            margins = torch.stack([difference - width, -difference - width], dim=-1) / sd
            tie = log_interval_probability((-width - difference) / sd, (width - difference) / sd)
            return Categorical(logits=torch.cat([torch.special.log_ndtr(margins), tie.unsqueeze(-1)], dim=-1))
        return Categorical(probs=best_of(function_samples / self.noise.sqrt()))

    def _predict(self, posterior: SkewGPPosterior, scale: OutcomeScale) -> Bernoulli | Categorical:
        k = posterior.base_sample_shape[-1] - 1
        if k == 2:
            difference = posterior.affine(torch.tensor([[1.0, -1.0]])).add_noise(2 * self.noise)
            if not self.ties_allowed:
                return Bernoulli(probs=difference.probability_above(0.0).squeeze(-1).squeeze(-1))
            win, loss = difference.probability_above(self.tie_width), difference.cdf(-self.tie_width)
            return Categorical(probs=torch.stack([win, loss, 1 - win - loss], dim=-1).squeeze(-2).squeeze(-2))
        samples = SobolQMCNormalSampler(torch.Size([1024]), seed=0)(posterior).squeeze(-1)
        law = self.forward(samples)
        assert isinstance(law, Categorical)
        return Categorical(probs=law.probs.mean(0))

    def latent_noise(self, X: Tensor) -> Tensor:
        """The variance of one item's noise."""
        return self.noise

    def fantasy_rows(self, noisy: Tensor, scale: OutcomeScale) -> FantasyRows:
        """Which of the points is preferred to all others."""
        q = noisy.shape[-1]
        if q < 2:
            raise UnsupportedError(
                "A comparison needs two or more points in X; to compare one new point with an old one, put both in X."
            )
        eye = torch.eye(q, dtype=noisy.dtype, device=noisy.device)
        best = noisy.argmax(-1)
        losers = torch.stack([torch.cat([eye[:i], eye[i + 1 :]]) for i in range(q)])  # q x (q - 1) x q
        weight = eye[best].unsqueeze(-2) - losers[best]
        lower = noisy.new_zeros(weight.shape[:-1])
        noise = self.noise.to(noisy) * (weight @ weight.mT)
        return FantasyRows(weight, lower, torch.full_like(lower, torch.inf), noise)
