r"""Segments of people, from what is known of each one's tastes.

Under the model the tastes of person `j` are those of all plus `d_j`, with the prior `N(0, S)` of people and a normal
posterior `N(m_j, V_j)`. Their ratio is the likelihood of the person's answers, of precision `V_j^-1 - S^-1`. Under a
mixture of normal distributions in place of the prior, one for each segment, it has closed forms: the mixture is
fitted by expectation maximisation ([Dempster1977maximum]_) with these likelihoods as data, so that people who said
little are not taken for average ones. The number of segments is that of the best log likelihood less one and a half
for each parameter, the rule that [Andrews2003comparison]_ found best for segments of choices; the Bayesian information
criterion found one segment where there were three.

.. [Dempster1977maximum] Dempster, Laird, Rubin. Maximum likelihood from incomplete data via the EM algorithm. 1977.
.. [Andrews2003comparison] Andrews, Currim. Journal of Marketing Research 40, 2003.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_skewgp.checks import as_count, as_seed
from botorch_skewgp.frames import Answers
from botorch_skewgp.frames.columns import pandas
from botorch_skewgp.models import SkewGP
from botorch_skewgp.summaries.draws import NEW, Question
from botorch_skewgp.summaries.tastes import design

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_SEGMENTS = 6
PENALTY = 3.0  # of a parameter: where all are alike, 1 of 10 made-up populations of 60 people had two segments
NUM_STARTS = 8
NUM_STEPS = 200
TOLERANCE = 1e-6  # of the mean log likelihood of a person
FLOOR = 1e-4  # of the variance within segments, in that between people
NUM_PEOPLE = 64  # whose tastes are computed at a time


class Segments(NamedTuple):
    """Segments of people, numbered from the largest, 1.

    Args:
        sizes: The share of people in each segment, `share`, and the number of those most likely in it, `people`.
        memberships: The `segment` that each person is most likely in, and the probability of each.
        tastes: The mean tastes of each segment, indexed by `segment`, `attribute` and `value`, see
            `botorch_skewgp.summaries.tastes.tastes`: `mean`, and `lower` and `upper` ends between which people's are.
    """

    sizes: DataFrame
    memberships: DataFrame
    tastes: DataFrame


class _Evidence(NamedTuple):
    """What each person's answers say of tastes `b`: `exp(h^T b - b^T A b / 2)`, up to a constant."""

    precision: Tensor  # A, J x p x p
    pull: Tensor  # h, J x p


class _Mixture(NamedTuple):
    """A mixture of normal distributions with one covariance, and the log likelihood of people in each part."""

    weight: Tensor
    mean: Tensor
    covariance: Tensor
    joint: Tensor  # J x k

    @property
    def log_likelihood(self) -> float:
        """Of everybody."""
        return float(self.joint.logsumexp(-1).sum())

    @property
    def criterion(self) -> float:
        """Minus twice the log likelihood, and a penalty of each parameter, the smaller the better."""
        k, p = self.mean.shape
        number = k * p + p * (p + 1) / 2 + k - 1
        return PENALTY * number - 2 * self.log_likelihood


def segments(
    model: SkewGP,
    answers: Answers,
    k: int | None = None,
    level: float = 0.9,
    seed: int = 0,
) -> Segments:
    r"""Segments of people of alike tastes: sizes, memberships, mean tastes.

    Example::

        found = segments(model, answers)
        found.sizes, found.memberships.loc["ann"]

    Args:
        model: A fitted model of people's answers.
        answers: The answers that a reader returned, with the names.
        k: The number of segments; by default chosen from 1 to 6, see this module.
        level: The probability of intervals of tastes.
        seed: The seed of starting values.

    Returns:
        Three data frames, see `Segments`.

    Raises:
        InputDataError: If answers do not name two people, or there are more segments than people.
    """
    question = Question("segments", model, answers, level, seed=seed)
    named = question.people("each")
    if len(named) < 2:
        raise InputDataError("segments needs the answers of two people or more.")
    numbers = range(1, min(MAX_SEGMENTS, len(named)) + 1)
    if k is not None:
        numbers = range(as_count(k, "k", least=1, most=len(named)), k + 1)
    shared, evidence, prior, at = _evidence(model, answers, [*named.values()])
    scale = prior.diagonal().sqrt().clamp(min=1e-8)
    scaled = _Evidence(evidence.precision * scale * scale.unsqueeze(-1), evidence.pull * scale)
    prior = prior / scale / scale.unsqueeze(-1)
    found = [_fitted(scaled, prior, number, as_seed(seed)) for number in numbers]
    best = min(found, key=lambda mixture: mixture.criterion)
    order = best.weight.argsort(descending=True)
    chances = best.joint.softmax(-1)[:, order]
    which = chances.argmax(-1)
    places = [i + 1 for i in range(len(order))]
    index = pandas().Index(places, name="segment")
    counts = torch.bincount(which, minlength=len(order)).tolist()
    sizes = pandas().DataFrame({"share": best.weight[order].tolist(), "people": counts}, index=index)
    people = pandas().Index(list(named), name="person", tupleize_cols=False)
    memberships = pandas().DataFrame(chances.tolist(), index=people, columns=places)
    memberships.insert(0, "segment", (which + 1).tolist())
    generator = torch.Generator().manual_seed(as_seed(seed))
    noise = torch.randn(4096, *best.mean.shape, generator=generator, dtype=torch.float64).to(best.mean)
    within = noise @ torch.linalg.cholesky(best.covariance).mT
    tastes = shared + scale * (best.mean[order] + within)
    rows = [(place, *taste) for place in places for taste in at]
    table = question.table(tastes, ["segment", "attribute", "value"], rows)
    table["mean"] = (shared + scale * best.mean[order]).flatten().tolist()
    return Segments(sizes, memberships, table)


@torch.no_grad()
def _evidence(model: SkewGP, answers: Answers, judges: list) -> tuple[Tensor, _Evidence, Tensor, list]:
    """The mean shared tastes, what people's answers say of what is their own, its prior covariance, and tastes."""
    at = design(answers)
    weight = (at.taste_weight @ at.weight).to(model.datapoints)
    X, n = at.X.to(model.datapoints).repeat(2, 1), len(at.X)
    difference = torch.cat([-weight, weight], dim=-1)
    model = model.for_judge(None)

    def own(some: list) -> tuple[Tensor, Tensor]:
        by = [[None] * n + [judge] * n for judge in some]
        posterior = model.latent_posterior(X.expand(len(some), -1, -1), by).affine(difference)
        return posterior.mean.squeeze(-1), posterior.covariance_matrix

    p = len(weight)
    prior = own([NEW])[1][0]
    floor = 1e-6 * prior.diagonal().mean() * torch.eye(p).to(prior)
    prior = prior + floor
    means, covariances = zip(
        *(own(judges[first : first + NUM_PEOPLE]) for first in range(0, len(judges), NUM_PEOPLE)), strict=True
    )
    inverse = torch.linalg.inv(torch.cat(covariances) + floor)
    precision = inverse - torch.linalg.inv(prior)
    # directions in which nothing was said have none, but for rounding
    values, vectors = torch.linalg.eigh(0.5 * (precision + precision.mT))
    precision = (vectors * values.clamp(min=0).unsqueeze(-2)) @ vectors.mT
    pull = (inverse @ torch.cat(means).unsqueeze(-1)).squeeze(-1)
    shared = model.latent_posterior(at.X.to(X)).affine(weight).mean.squeeze(-1)
    return shared, _Evidence(precision, pull), prior, at.tastes


def _fitted(evidence: _Evidence, prior: Tensor, k: int, seed: int) -> _Mixture:
    """The best mixture of several starts."""
    generator = torch.Generator().manual_seed(seed)
    starts = 1 if k == 1 else NUM_STARTS
    return max((_climb(evidence, prior, k, generator) for _ in range(starts)), key=lambda one: one.log_likelihood)


def _climb(evidence: _Evidence, prior: Tensor, k: int, generator: torch.Generator) -> _Mixture:
    """Expectation maximisation from the estimates of people who were drawn."""
    p = len(prior)
    shrunk = torch.linalg.solve(evidence.precision + torch.linalg.inv(prior), evidence.pull.unsqueeze(-1)).squeeze(-1)
    mean = shrunk[_apart(shrunk, k, generator)]
    weight = torch.full((k,), 1 / k).to(prior)
    covariance = prior if k == 1 else 0.3 * prior
    floor = FLOOR * torch.eye(p).to(prior)
    before, mixture = -math.inf, None
    for _ in range(NUM_STEPS):
        # given a segment: b ~ N(mean, covariance) times a person's likelihood
        inverse = torch.linalg.inv(covariance)
        given = torch.linalg.inv(evidence.precision + inverse)  # J x p x p
        told = evidence.pull.unsqueeze(-2) + mean @ inverse  # J x k x p
        centre = told @ given
        log_density = 0.5 * ((told * centre).sum(-1) - ((mean @ inverse) * mean).sum(-1))
        log_density = log_density + 0.5 * (torch.logdet(given) + torch.logdet(inverse)).unsqueeze(-1)
        mixture = _Mixture(weight, mean, covariance, weight.log() + log_density)
        if mixture.log_likelihood - before < TOLERANCE * len(given):
            break
        before = mixture.log_likelihood
        share = mixture.joint.softmax(-1)
        weight = share.mean(0).clamp(min=1e-12)
        mean = (share.unsqueeze(-1) * centre).sum(0) / share.sum(0).clamp(min=1e-12).unsqueeze(-1)
        off = centre - mean
        within = (share.unsqueeze(-1) * off).flatten(0, 1).mT @ off.flatten(0, 1)
        covariance = (within + given.sum(0)) / len(given) + floor
    assert mixture is not None
    return mixture


def _apart(points: Tensor, k: int, generator: torch.Generator) -> list[int]:
    """People who are far from each other, each drawn with chances by the squared distance from those before."""
    chosen = [int(torch.randint(len(points), (1,), generator=generator))]
    while len(chosen) < k:
        distance = (points.unsqueeze(1) - points[chosen]).square().sum(-1).amin(-1) + 1e-12
        chosen.append(int(torch.multinomial(distance.double().cpu(), 1, generator=generator)))
    return chosen
