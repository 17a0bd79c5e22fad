r"""The point to recommend now, the best so far, and how likely each point is to be the best, or better than others.

.. [Gonzalez2017preferential] Gonzalez, Dai, Damianou, Lawrence. Preferential Bayesian optimization. ICML 2017.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import PosteriorMean
from botorch.acquisition.objective import PosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.model import Model
from botorch.utils.sampling import manual_seed
from torch import Tensor

from botorch_skewgp.acquisition.closed_forms import MixtureMean
from botorch_skewgp.acquisition.comparison_groups import warn_if_undecided
from botorch_skewgp.acquisition.look_ahead import LatentMixture, joint_draws, joint_posterior
from botorch_skewgp.acquisition.model_points import check_one_output, points_of, posterior_means
from botorch_skewgp.acquisition.rounding import rounded_inputs
from botorch_skewgp.acquisition.safety import LEVEL, SafetyInequality, frozen, search_safely
from botorch_skewgp.acquisition.search_domain import SearchDomain, Values, as_points
from botorch_skewgp.acquisition.search_options import OWN_STARTS, split_options
from botorch_skewgp.checks import as_count, as_seed
from botorch_skewgp.posteriors import SkewGPPosterior
from botorch_skewgp.protocols import for_judge, input_transform_of, members_of

RECOMMENDED_CONFIDENCE = 0.97  # of 20 recommendations in each of six families 18 to 20 are safe, by 0.95 14 to 20
ROUNDING = 1e-10  # of a posterior mean
MAX_ENTRIES = 10**7  # of a tensor of differences


def recommend(
    model: Model,
    bounds: Tensor | None = None,
    X_candidates: Tensor | None = None,
    posterior_transform: PosteriorTransform | None = None,
    num_restarts: int = 10,
    raw_samples: int = 256,
    discrete_dims: Values | None = None,
    cat_dims: Values | None = None,
    judge: int | str | Sequence[int | str] | None = None,
    validity: Model | None = None,
    level: float = LEVEL,
    confidence: float = RECOMMENDED_CONFIDENCE,
    safe_points: Tensor | None = None,
    fixed_features: Mapping[int, float] | None = None,
    seed: int = 0,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    r"""The point to recommend now: the one with the largest posterior mean.

    With bounds the mean is maximised over the domain, starting among others from the best of the candidates; without,
    over the candidates alone. Among a model's own points, an `UndecidedRecommendationWarning` is issued where no
    comparison links the point to one that is as good a recommendation.

    With a model of whether experiments work, `validity`, it is the best of the points of which that is sure enough:
    `P(P(works) >= level) >= confidence`, and of `safe_points`, as in `next_safe`. The confidence is higher than there:
    the best of many settings lies at the edge of what is safe, where claims hold less than elsewhere.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> best_seen, utility = recommend(model)
        >>> best, utility = recommend(model, bounds)
        >>> labels = SkewGP(train_X, Validity(worked), ValidityLikelihood(noise=1.0))
        >>> best_safe, utility = recommend(model, bounds, validity=labels, safe_points=train_X[:1])

    The model has one output, or several and a posterior transform to one, which weights the utilities of several
    judges, too. `X_candidates` are points to recommend from, `n x d`; the model's own points if `None`. Other arguments
    are as for `next_pair`; `options` need bounds. Returns the point, `1 x d`, and its posterior mean.

    Raises:
        InputDataError: If there are no candidates or one is not finite, options are given without bounds, the model
            rounds the bounds to values beyond them, or the values that inputs may take do not fit the bounds.
        UnsupportedError: If the model has several outputs and there is no posterior transform, no known points of its
            own, or no judges.
        NoSafePointError: If no point is safe; it names the surest one.
    """
    model = for_judge(model, judge)
    if posterior_transform is None:
        check_one_output(model)
    options |= {"discrete_dims": discrete_dims, "cat_dims": cat_dims, "fixed_features": fixed_features}
    where, search = split_options(options, num_restarts, raw_samples)
    safe = None if validity is None else SafetyInequality(frozen(validity), level, confidence, safe_points)
    own = points_of(model)
    X = own if X_candidates is None else as_points(X_candidates, own, "X_candidates")
    if X is None:
        raise UnsupportedError(f"{type(model).__name__} has no single set of points of its own; give X_candidates.")
    if bounds is None:
        given = sorted(name for name, value in options.items() if value is not None)
        if given:
            raise InputDataError(f"{', '.join(given)} only has a meaning with bounds.")
        if not len(X):
            raise InputDataError("The model has no points to recommend from; give bounds or X_candidates.")
        if safe is not None:
            X = safe.select(X)
        means = posterior_means(model, X, posterior_transform)
        if X_candidates is None and safe is None:
            warn_if_undecided(model, means)
        best = means.argmax()
        return rounded_inputs(input_transform_of(model), X[best].clone().unsqueeze(0)), means[best]
    acquisition: AcquisitionFunction
    if posterior_transform is None and MixtureMean.takes(model):
        acquisition = MixtureMean(model)
    else:
        acquisition = PosteriorMean(model, posterior_transform=posterior_transform)
    if safe is not None:
        with manual_seed(as_seed(seed)):
            return search_safely(acquisition, bounds, safe, starts=X, **where, **search)
    domain = SearchDomain.build(model, bounds, X, **where)
    known = domain.nearest(X)
    if len(known):
        means = posterior_means(model, known, posterior_transform)
        seen, largest = known[means.argmax()].unsqueeze(0), means.max()
        if not domain.box.factors and num_restarts > 1 and OWN_STARTS.isdisjoint(search):
            search["batch_initial_conditions"] = seen.unsqueeze(0)
    with manual_seed(as_seed(seed)):
        point, value = domain.optimize(acquisition, 1, **search)
    # the search may end beside it
    return (seen, largest) if len(known) and value <= largest + ROUNDING * largest.abs() else (point, value)


@torch.no_grad()
def probability_of_best(
    model: Model, X_candidates: Tensor | None = None, num_samples: int = 4096, seed: int = 0
) -> Tensor:
    r"""The probability that each point has the largest value of the latent function among all given points.

    At the recommended point it is the probability that no other of these points is better; where it is low,
    `next_question` and `next_pair` ask about the rivals again. Equal points share their probability; the sum is 1.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> best, _ = recommend(model)
        >>> sure = probability_of_best(model)[(train_X == best).all(-1)].sum()

    Args:
        model: A SkewGP with one output, or an ensemble of such models.
        X_candidates: An `n x d` tensor of points; the model's own points if `None`.
        num_samples: The number of joint draws; the standard error of a probability `p` is `sqrt(p (1 - p) / num)`.
        seed: The seed of the draws.

    Raises:
        InputDataError: If the points are not `n x d` with at least one finite point, or there are fewer draws than
            members of the ensemble.
        UnsupportedError: If the model is another.
    """
    members = members_of(model, "probability_of_best")
    own = members[0].datapoints
    X = as_points(own if X_candidates is None else X_candidates, own, "X_candidates")
    num_samples, seed = as_count(num_samples, "num_samples", least=len(members)), as_seed(seed)
    # equal points share a probability
    points, place = rounded_inputs(input_transform_of(model), X).unique(dim=0, return_inverse=True)
    best = []
    for number, member in enumerate(members):
        posterior = joint_posterior(member, points)
        mixture = LatentMixture.of(posterior, member.outcome_scale, num_draws=posterior.component_means.shape[-1])
        best.append(joint_draws(mixture, num_samples // len(members), seed + number).argmax(0))
    num_best = torch.bincount(torch.cat(best), minlength=len(points)).to(X)
    num_equal = torch.bincount(place, minlength=len(points))
    return (num_best / num_best.sum() / num_equal)[place]


@torch.no_grad()
def copeland_scores(model: Model, X_candidates: Tensor | None = None) -> Tensor:
    r"""The Copeland score of each point: the share of the other points that it is expected to be better than.

    `C(x_i)` is the average over all other points `x_j` of the posterior probability that `f(x_i) > f(x_j)`, exact on
    the mixture of the model's draws ([Gonzalez2017preferential]_, section 2.2, without the noise of answers). Unlike
    `probability_of_best` it ranks all points, not only the best. Equal points beat each other half the time.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> ranking = copeland_scores(model).argsort(descending=True)

    Args:
        model: A SkewGP with one output, or an ensemble of such models.
        X_candidates: An `n x d` tensor of two points or more; the model's own points if `None`. Costs grow with `n^2`
            times the number of draws.

    Returns:
        An `n`-dim tensor; the mean of all scores is one half.

    Raises:
        InputDataError: If the points are not `n x d` with at least two finite points.
        UnsupportedError: If the model is another.
    """
    members = members_of(model, "copeland_scores")
    own = members[0].datapoints
    X = as_points(own if X_candidates is None else X_candidates, own, "X_candidates")
    if len(X) < 2:
        raise InputDataError("X_candidates must hold at least two points, which are compared with each other; got 1.")
    points, place = rounded_inputs(input_transform_of(model), X).unique(dim=0, return_inverse=True)
    copies = torch.bincount(place, minlength=len(points)).to(X)
    wins = torch.stack([_win_probabilities(joint_posterior(member, points)) for member in members]).mean(0)
    # over all points but itself: equal ones, itself among them, count one half each
    return ((wins @ copies - 0.5) / (len(X) - 1))[place]


def _win_probabilities(posterior: SkewGPPosterior) -> Tensor:
    """The probability that each point, in a row, is better than each other one; one half for itself."""
    means, covariance = posterior.component_means, posterior.gaussian_covariance
    variances = covariance.diagonal()
    squared = (variances.unsqueeze(-1) + variances - 2 * covariance).clamp(min=0)  # rounding only
    deviations = squared.sqrt().unsqueeze(-1)
    size = max(1, MAX_ENTRIES // means.numel())  # points at a time, to save memory
    rows = []
    for mean, scale in zip(means.split(size), deviations.split(size), strict=True):
        difference = mean.unsqueeze(1) - means
        certain = 0.5 + 0.5 * difference.sign()
        probability = torch.where(scale > 0, torch.special.ndtr(difference / scale), certain)
        rows.append(probability @ posterior.probabilities)
    return torch.cat(rows)
