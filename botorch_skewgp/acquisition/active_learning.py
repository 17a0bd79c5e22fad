r"""Active learning: the observation with the largest expected information about the latent function.

The information is `I(y; f) = H(y) - E[H(y | f)]`, Bayesian active learning by disagreement ([Houlsby2011bald]_), for
labels, validity, grades and duels. On the posterior's mixture the probabilities in the first entropy have closed forms.
The second is an integral over a normal distribution for each draw, by quadrature in factors that leave a smooth
integrand at every ratio of noise to uncertainty: with `b_j` the cut-points, `s^2` the noise variance and `g_j(f) =
exp(-(f - b_j)^2 / (pi log(2) s^2))`, the approximation of the binary entropy in [Houlsby2011bald]_, it is `sum_j
E[g_j(f) (H(f) / sum_i g_i(f))]`, and a normal density times `g_j` is normal up to a factor. Answers that may be slips
have an entropy even far from cut-points, which is added in closed form; `H` is the rest.

.. [Benavoli2021unified] A. Benavoli, D. Azzimonti, D. Piga. A unified framework for closed-form nonparametric
   regression, classification, preference and mixed problems with skew Gaussian processes. Machine Learning 110, 2021.
.. [Houlsby2011bald] N. Houlsby, F. Huszar, Z. Ghahramani, M. Lengyel. Bayesian active learning for classification and
   preference learning. arXiv 1112.5745, 2011.
.. [Kirsch2019batchbald] A. Kirsch, J. van Amersfoort, Y. Gal. BatchBALD: efficient and diverse batch acquisition for
   deep Bayesian active learning. NeurIPS 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.acquisition.interpolation import interpolated
from botorch_skewgp.acquisition.outlook import entropy
from botorch_skewgp.acquisition.questions import QuestionAcquisitionFunction
from botorch_skewgp.observations import Observation
from botorch_skewgp.observations.checks import as_count, as_number, as_seed, check_class, check_parts
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.protocols import LatentModel
from botorch_skewgp.rows import Reading
from botorch_skewgp.truncated.univariate import hermite

NUM_NODES = 10  # of the quadrature; the integrand is close to a constant
NODES_PER_WIDTH = 4.5  # of interpolation of its logarithm, for an error of at most 1e-9
MAX_OUTCOMES = 64  # joint outcomes of pending observations, beyond which they are sampled


class SkewBayesianActiveLearningByDisagreement(QuestionAcquisitionFunction):
    r"""The expected information about the latent function from one observation of a given kind, in nats.

    A function of single points for labels and grades, of pairs for duels, which have three outcomes where ties are
    allowed. Exact given the model's draws, up to the quadrature's rounding, and smooth. With pending points it is the
    information beyond that of their unknown outcomes `y_P`, `I(y; f | y_P) = E[H(y | y_P)] - E[H(y | f)]`, so that
    choosing one after the other is greedy batch selection ([Kirsch2019batchbald]_). The first term then is a weighted
    average over the model's draws, each completed by values at the pending points; more than `MAX_OUTCOMES` joint
    outcomes are replaced by a fixed sample.

    BoTorch's `PairwiseBayesianActiveLearningByDisagreement` assumes a normal posterior, and uses one item's noise for
    that of a duel.

    Example:
        >>> model = SkewGP(train_X, Binary(labels))
        >>> acq = SkewBayesianActiveLearningByDisagreement(model)
        >>> candidate, value = optimize_acqf(acq, bounds, q=1, num_restarts=4, raw_samples=64)

    Args:
        model: A SkewGP with one output, or an ensemble of such models, for the information about the latent function
            and the hyperparameters.
        kind: The kind of the observation, with a single reading and cut-points, such as `Preference`, `Binary`,
            `Ordinal` and `Validity`; by default the first that the model's likelihood takes, comparisons before others.
        X_pending: Points whose observations are pending, `m x d`; for duels the pairs one after the other.
        samples_per_draw: With pending points, the number of draws of the values there for each of the model's draws.
        seed: The seed of the base samples at pending points.

    Raises:
        UnsupportedError: If the model is no SkewGP, or its likelihood takes no supported kind.
        InputDataError: If the likelihood does not take observations of the wanted kind.
    """

    X_pending: Tensor | None  # type: ignore[assignment]

    def __init__(
        self,
        model: Model,
        kind: type[Observation] | None = None,
        X_pending: Tensor | None = None,
        samples_per_draw: int = 4,
        seed: int = 0,
    ) -> None:
        super().__init__(model=model, kind=kind)
        self.samples_per_draw, self.seed = as_count(samples_per_draw, "samples_per_draw", least=1), as_seed(seed)
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Condition on the unknown outcomes of pending observations.

        Args:
            X_pending: An `m x d` tensor of points, for duels the pairs one after the other; `None` for none.

        Raises:
            InputDataError: If the points are not a tensor.
            BotorchTensorDimensionError: If the points are not `m x d`, or do not make whole pairs.
        """
        check_parts(X_pending=(X_pending, Tensor))
        self._refined: list[LatentModel] = []
        if X_pending is None or X_pending.shape[-2] == 0:
            self.X_pending = None
            return
        k = self.points_per_observation
        if X_pending.ndim != 2 or X_pending.shape[0] % k:
            raise BotorchTensorDimensionError(
                f"X_pending must be m x d with {k} point(s) per observation; got shape {tuple(X_pending.shape)}."
            )
        self.X_pending = X_pending.detach().clone()
        items, log_p = torch.eye(X_pending.shape[0] // k).to(X_pending), []
        with torch.no_grad():
            for member in self.members:
                reading = self.reading(member, X_pending)
                weight = torch.kron(items, reading.weight)
                refined, values = member.condition_on_draws(self.X_pending, self.samples_per_draw, self.seed, weight)
                self._refined.append(refined)
                log_p.append(reading.log_outcome_probabilities(values))
            self._outcome_weights = self._weights_of_outcomes(torch.cat(log_p, dim=-2))

    def _weights_of_outcomes(self, log_probability: Tensor) -> Tensor:
        r"""For each joint outcome the log probabilities of components given it, then its own; `M x (S + 1)`.

        Args:
            log_probability: Of every outcome of every pending observation given every component, `m x S x K`.
        """
        m, S, K = log_probability.shape
        if K**m <= MAX_OUTCOMES:
            grid = [torch.arange(K, device=log_probability.device)] * m
            outcomes = torch.cartesian_prod(*grid).reshape(-1, m)
        else:
            generator = torch.Generator(log_probability.device).manual_seed(self.seed)
            # one component of each part of them, at random: at equal steps Sobol points are nearly equal
            at = torch.rand(MAX_OUTCOMES, generator=generator, device=log_probability.device)
            at = (at + torch.arange(MAX_OUTCOMES, device=log_probability.device)) * (S / MAX_OUTCOMES)
            which = at.long().clamp(max=S - 1)
            probabilities = log_probability[:, which].exp().flatten(0, 1)
            drawn = torch.multinomial(probabilities, 1, generator=generator)
            outcomes = drawn.reshape(m, MAX_OUTCOMES).mT
        index = outcomes.mT.unsqueeze(-2).expand(m, S, -1)
        joint = log_probability.gather(-1, index).sum(0).mT  # M x S
        own = joint.logsumexp(-1, keepdim=True) - math.log(S)
        if K**m > MAX_OUTCOMES:
            own = torch.zeros_like(own)  # sampled in proportion already
        return torch.cat([joint.log_softmax(-1), own.log_softmax(-2)], dim=-1)

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Self:
        result = super()._apply(fn, *args, **kwargs)
        if self.X_pending is not None:
            pending = fn(self.X_pending)
            if pending is not self.X_pending:
                self.set_X_pending(pending)
        return result

    def _read(self, member: LatentModel, X: Tensor, reading: Reading) -> SkewGPPosterior:
        """The posterior of an observation's reading at `batch_shape x q x d` points, before noise."""
        posterior = self.latent_posterior(member, X)
        return posterior.affine(reading.weight) if reading.num_items > 1 else posterior

    def _value(self, X: Tensor) -> Tensor:
        members, log_p, log_weights, known = self.members, [], [], []
        for member, refined in zip(members, self._refined or members, strict=True):
            reading = self.reading(member, X)
            read = self._read(member, X, reading)
            known.append(_expected_entropy(read, reading))
            if refined is not member:
                read = self._read(refined, X, reading)
            log_p.append(reading.log_outcome_probabilities(read.component_means.squeeze(-2), read.gaussian_variance))
            log_weights.append(read.log_probabilities - math.log(len(members)))
        expected = torch.stack(known).mean(0)
        outcomes = torch.cat(log_p, dim=-2)  # batch_shape x S x K, the draws of all members
        if self.X_pending is None:
            weights = torch.cat(log_weights, dim=-1).unsqueeze(-1)  # S x 1
            return _entropy_of_average(outcomes, weights).squeeze(-1) - expected
        weights, own = self._outcome_weights[:, :-1].mT, self._outcome_weights[:, -1]
        return _entropy_of_average(outcomes, weights) @ own.exp() - expected


def _entropy_of_average(log_p: Tensor, log_weights: Tensor) -> Tensor:
    """The entropies of `batch_shape x S x K` outcomes under `M` weightings `... S x M` of draws, `batch_shape x M`."""
    return entropy(log_weights.exp().mT @ log_p.exp())  # of batch_shape x M x K


def _expected_entropy(read: SkewGPPosterior, reading: Reading) -> Tensor:
    """`E[H(y | f)]` over the mixture, `batch_shape`, by interpolation over the components' means, which are many."""
    means, variance = read.component_means.squeeze(-2), read.gaussian_variance  # batch_shape x S, batch_shape x 1
    wide = (variance + _width(reading)).sqrt().detach()
    nodes_per_width = NODES_PER_WIDTH
    if reading.num_outcomes > 2:  # the likeliest outcome changes half way between cut-points, sharply if these are far
        gaps = reading.cutpoints[0].detach().diff().max() / wide  # apart
        nodes_per_width *= 2 + float(gaps.max())
    log_entropies = interpolated(lambda at: _log_mean_entropy(at, variance, reading), means, wide, nodes_per_width)
    expected = (log_entropies + read.log_probabilities).logsumexp(-1).exp()
    if reading.slips is None:
        return expected
    attentive = replace(reading, slips=None).log_outcome_probabilities(means, variance).exp()  # batch_shape x S x K
    share = (attentive * read.log_probabilities.exp().unsqueeze(-1)).sum(-2)
    return expected + (share * _entropies_of_slips(reading)).sum(-1)


def _entropies_of_slips(reading: Reading) -> Tensor:
    """The entropy of an answer with slips for each outcome of a certain attentive answer, `K`."""
    assert reading.slips is not None
    certain = torch.eye(reading.num_outcomes).to(reading.slips)
    return torch.special.entr(reading.with_slips(certain)).sum(-1)


def _width(reading: Reading) -> Tensor:
    """The variance of `g_j`, were it a density; see the module's text."""
    return 0.5 * math.pi * math.log(2.0) * reading.variance


def _log_mean_entropy(means: Tensor, variance: Tensor, reading: Reading) -> Tensor:
    """`log E[H(y | f)]` of normal `f` with `batch_shape x n` means and `batch_shape x 1` variances."""
    means, variance = means.unsqueeze(-1), variance.unsqueeze(-1)
    width, cutpoints = _width(reading), reading.cutpoints[0]
    # the normal density times g_j: its log factor, its centre and its variance
    total = variance + width
    log_factor = 0.5 * (width.log() - total.log()) - 0.5 * (means - cutpoints).square() / total
    centre = (means * width + cutpoints * variance) / total  # batch_shape x n x (K - 1)
    narrow = (variance * width / total).sqrt()
    nodes, log_weights = hermite(means, NUM_NODES)
    f = centre.unsqueeze(-1) + narrow.unsqueeze(-1) * nodes  # batch_shape x n x (K - 1) x nodes
    log_sum = (-0.5 * (f.unsqueeze(-1) - cutpoints).square() / width).logsumexp(-1)
    terms = log_factor.unsqueeze(-1) + log_weights + _log_entropy(f, reading) - log_sum
    return terms.flatten(-2).logsumexp(-1)


def _log_entropy(f: Tensor, reading: Reading) -> Tensor:
    """The log of the entropy of an outcome given `f`, finite far from all cut-points.

    Where the answer may be a slip, the log of its excess over the average of `_entropies_of_slips`: the information
    about the attentive answer, which vanishes far from cut-points.
    """
    if reading.slips is not None:
        attentive = replace(reading, slips=None).log_outcome_probabilities(f).exp()
        entropy = torch.special.entr(reading.with_slips(attentive)).sum(-1)
        information = entropy - (attentive * _entropies_of_slips(reading)).sum(-1)
        return information.clamp(min=torch.finfo(f.dtype).tiny).log()  # rounding only
    log_p = reading.log_outcome_probabilities(f)
    certain = log_p > -torch.finfo(log_p.dtype).tiny
    log_surprise = torch.where(certain, -1.0, log_p).neg().log()
    others = torch.where(certain, -torch.inf, log_p).logsumexp(-1, keepdim=True)  # the surprise of a certain outcome
    return (log_p + torch.where(certain, others, log_surprise)).logsumexp(-1)


def select_from_pool(
    acq_function: AcquisitionFunction,
    pool: Tensor,
    num: int = 1,
    min_distance: float | None = None,
    batch_limit: int = 256,
) -> tuple[Tensor, Tensor]:
    r"""Choose entries of a pool greedily, one after the other, as a batch.

    Each choice is the remaining entry of largest acquisition value, with those chosen so far as pending points. For
    information this is the greedy choice of the batch ([Kirsch2019batchbald]_), and an entry next to a chosen one has
    little left to tell. For acquisition functions without pending points give `min_distance` instead: no entry nearer
    than that to a chosen one is chosen.

    Example:
        >>> acq = SkewBayesianActiveLearningByDisagreement(SkewGP(train_X, Binary(labels)))
        >>> chosen, information = select_from_pool(acq, pool, num=5)
        >>> X_next = pool[chosen]

    Args:
        acq_function: The acquisition function; its pending points stay pending.
        pool: An `N x d` tensor of points, or `N x q x d` of sets of points such as pairs.
        num: The number of entries to choose.
        min_distance: The least Euclidean distance between the points of chosen entries, in units of the pool.
        batch_limit: The number of entries evaluated at once.

    Returns:
        The `num` indices of the entries chosen, in the order of choice, and their acquisition values when chosen.

    Raises:
        BotorchTensorDimensionError: If the pool has another number of dimensions.
        InputDataError: If the pool has fewer entries than wanted (far enough from each other).
    """
    check_class(pool, "pool", Tensor)
    if pool.ndim not in (2, 3):
        raise BotorchTensorDimensionError(f"pool must be N x d or N x q x d; got shape {tuple(pool.shape)}.")
    X = pool.unsqueeze(-2) if pool.ndim == 2 else pool
    N = X.shape[0]
    num = as_count(num, "num", least=1, most=N)  # entries of the pool
    as_count(batch_limit, "batch_limit", least=1)
    min_distance = None if min_distance is None else as_number(min_distance, "min_distance", least=0.0)
    before = getattr(acq_function, "X_pending", None)
    allowed = torch.ones(N, dtype=torch.bool, device=X.device)
    chosen: list[int] = []
    best: list[Tensor] = []
    try:
        for _ in range(num):
            if not bool(allowed.any()):
                raise InputDataError(
                    f"Only {len(chosen)} of {num} entries are at least {min_distance} apart; lower min_distance."
                )
            left = allowed.nonzero().squeeze(-1)
            with torch.no_grad():
                values = torch.cat([acq_function(X[part]) for part in left.split(batch_limit)])
            best_value, position = values.max(0)
            index = left[position]
            chosen.append(int(index))
            best.append(best_value)
            allowed[index] = False
            if min_distance is not None:
                distance = torch.cdist(X.flatten(0, 1), X[index]).reshape(N, -1).amin(-1)
                allowed &= distance >= min_distance
            elif len(chosen) < num:
                picked = X[chosen].flatten(0, 1)
                _set_pending(acq_function, picked if before is None else torch.cat([before, picked]))
    finally:
        if min_distance is None and num > 1:
            _set_pending(acq_function, before)
    return torch.tensor(chosen, device=X.device), torch.stack(best)


def _set_pending(acq_function: AcquisitionFunction, X_pending: Tensor | None) -> None:
    try:
        acq_function.set_X_pending(X_pending)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"{type(acq_function).__name__} does not account for pending points: give min_distance to choose several "
            "entries, or choose them one by one."
        ) from error
