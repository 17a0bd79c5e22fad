r"""The probability of each point to be the best one."""

from __future__ import annotations

import torch
from botorch.models.model import Model
from torch import Tensor

from botorch_skewgp.acquisition.outlook import Belief, joint_draws
from botorch_skewgp.acquisition.search_domain import as_points
from botorch_skewgp.models.transforms import rounded_inputs
from botorch_skewgp.observations.checks import as_count, as_seed
from botorch_skewgp.protocols import input_transform_of, members_of


@torch.no_grad()
def probability_of_best(
    model: Model, X_candidates: Tensor | None = None, num_samples: int = 4096, seed: int = 0
) -> Tensor:
    r"""The probability that each point has the largest value of the latent function among all given points.

    At the recommended point it is the probability that no other of these points is better; where it is low,
    `next_question` and `next_pair` ask about the rivals again. Equal points share their probability.

    Example:
        >>> model = SkewGP(train_X, Preference(pairs))
        >>> best, _ = recommend(model)
        >>> sure = probability_of_best(model)[(train_X == best).all(-1)].sum()

    Args:
        model: A SkewGP with one output, or an ensemble of such models.
        X_candidates: An `n x d` tensor of points; the model's own points if `None`.
        num_samples: The number of joint draws; the standard error of a probability `p` is `sqrt(p (1 - p) / num)`.
        seed: The seed of the draws.

    Returns:
        An `n`-dim tensor that adds up to 1.

    Raises:
        InputDataError: If the points are not `n x d` with at least one finite point, or there are fewer draws than
            members of the ensemble.
        UnsupportedError: If the model is another.
    """
    members = members_of(model, "probability_of_best")
    own = members[0].datapoints
    X = as_points(own if X_candidates is None else X_candidates, own, "X_candidates")
    num_samples, seed = as_count(num_samples, "num_samples", least=len(members)), as_seed(seed)
    points, place = rounded_inputs(input_transform_of(model), X).unique(dim=0, return_inverse=True)
    votes = []
    for number, member in enumerate(members):
        posterior = member.latent_posterior(points)
        belief = Belief.of(posterior, member.outcome_scale, num_draws=posterior.component_means.shape[-1])
        votes.append(joint_draws(belief, num_samples // len(members), seed + number).argmax(0))
    share = torch.bincount(torch.cat(votes), minlength=len(points)).to(X)
    repeats = torch.bincount(place, minlength=len(points))
    return (share / share.sum() / repeats)[place]
