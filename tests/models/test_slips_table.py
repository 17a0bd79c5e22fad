"""Thirty small problems with slips, of every kind: the exact form against importance sampling from the prior."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import (
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitAffineLikelihood,
    ProbitLikelihood,
    RowLikelihood,
    SlopeLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.models.skew_prior import SkewPrior
from botorch_skewgp.observations import (
    AffineProbit,
    Binary,
    Choice,
    Observation,
    Ordinal,
    Preference,
    Ranking,
    Slope,
    Validity,
)
from botorch_skewgp.truncated.draws import DrawSettings

NUM, NUM_POINTS, LENGTHSCALE = 600_000, 6, 0.4


class Problem(NamedTuple):
    observation: Observation
    likelihood: RowLikelihood
    attentive: Callable[[Tensor, Tensor], Tensor]  # of values and slopes, `n x 6` each: probabilities of the answers
    slip: Tensor | float  # the height outside, as a slip
    gain: Tensor | float
    guess: Tensor | float = 0.0


def _pairs(m: int, g: torch.Generator) -> Tensor:
    return torch.stack([torch.randperm(NUM_POINTS, generator=g)[:2] for _ in range(m)])


def _label(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    index, label = torch.arange(m) % NUM_POINTS, torch.randint(2, (m,), generator=g)
    return Problem(
        Binary(label, index=index),
        ProbitLikelihood(slip=rate, noise=noise),
        lambda f, _: torch.special.ndtr((2 * label - 1) * f[:, index] / noise**0.5),
        rate / 2,
        1 - rate,
    )


def _guess(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    plain, guess = _label(m, rate, noise, g), 0.5
    label = plain.observation.labels  # type: ignore[attr-defined]
    likelihood = ProbitLikelihood(slip=rate, noise=noise, guess=guess)
    share = (1 - rate) * guess
    return plain._replace(likelihood=likelihood, gain=(1 - rate) * (1 - guess), guess=share * label)


def _validity(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    plain = _label(m, rate, noise, g)
    observation = Validity(plain.observation.labels.bool(), index=plain.observation.index)  # type: ignore[attr-defined]
    return plain._replace(observation=observation, likelihood=ValidityLikelihood(slip=rate, noise=noise))


def _grade(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    index, grade = torch.arange(m) % NUM_POINTS, torch.randint(4, (m,), generator=g)
    grade[:2] = torch.tensor([0, 3])
    cuts = torch.tensor([-1.0, 0.2, 0.9], dtype=torch.double)
    ends = torch.cat([torch.tensor([-torch.inf]), cuts, torch.tensor([torch.inf])])
    return Problem(
        Ordinal(grade, num_grades=4, index=index),
        OrdinalLikelihood(4, cutpoints=cuts, slip=rate, noise=noise),
        lambda f, _: (
            torch.special.ndtr((ends[grade + 1] - f[:, index]) / noise**0.5)
            - torch.special.ndtr((ends[grade] - f[:, index]) / noise**0.5)
        ),
        rate / 4,
        1 - rate,
    )


def _duel(m: int, rate: float, noise: float, g: torch.Generator, pairs: Tensor | None = None) -> Problem:
    pairs = _pairs(m, g) if pairs is None else pairs
    return Problem(
        Preference(pairs),
        PreferenceLikelihood(slip=rate, noise=noise),
        lambda f, _: torch.special.ndtr((f[:, pairs[:, 0]] - f[:, pairs[:, 1]]) / (2 * noise) ** 0.5),
        rate / 2,
        1 - rate,
    )


def _repeated(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    """Few pairs with several answers each, some against each other."""
    pairs = _pairs(3, g)
    return _duel(m, rate, noise, g, torch.cat([pairs, pairs, pairs.flip(-1), pairs])[:m])


def _judges(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    """Two judges of one taste, each with a rate of his own."""
    plain, judge = _duel(m, rate, noise, g), torch.arange(m) % 2
    rates = torch.tensor([rate, min(4 * rate, 0.8)], dtype=torch.double)
    observation = Preference(plain.observation.pairs, judge=judge)  # type: ignore[attr-defined]
    likelihood = PreferenceLikelihood(slip=rates, noise=noise)
    return plain._replace(observation=observation, likelihood=likelihood, slip=rates[judge] / 2, gain=1 - rates[judge])


def _listed(m: int, rate: float, noise: float, g: torch.Generator, ranked: bool) -> Problem:
    """Choices of the best of three, or their full order; noise is simulated."""
    items = torch.stack([torch.randperm(NUM_POINTS, generator=g)[:3] for _ in range(m // 2)])

    def attentive(f: Tensor, _: Tensor) -> Tensor:
        u = f[:, items] + noise**0.5 * torch.randn(len(f), *items.shape, dtype=f.dtype, generator=g)
        best = (u[..., 0] > u[..., 1]) & (u[..., 0] > u[..., 2])
        return (best & (u[..., 1] > u[..., 2]) if ranked else best).double()

    observation = Ranking(items) if ranked else Choice(items)
    likelihood = PreferenceLikelihood(slip=rate, noise=noise)
    return Problem(observation, likelihood, attentive, rate / (6 if ranked else 3), 1 - rate)


_choice, _ranking = (partial(_listed, ranked=ranked) for ranked in (False, True))


def _affine(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    """Rows with correlated noise, which is simulated, and two-sided bounds."""
    weight = torch.randn(m, NUM_POINTS, dtype=torch.double, generator=g)
    root = torch.randn(m, m, dtype=torch.double, generator=g) * (noise / m) ** 0.5
    covariance = root @ root.mT + 0.1 * torch.eye(m)
    upper = torch.where(torch.arange(m) % 2 == 0, torch.inf, 2.0).double()

    def attentive(f: Tensor, _: Tensor) -> Tensor:
        v = torch.randn(len(f), m, dtype=f.dtype, generator=g) @ torch.linalg.cholesky(covariance).mT
        u = f @ weight.mT + 0.3 + v
        return ((u > 0) & (u <= upper)).double()

    observation = AffineProbit(weight, 0.3, covariance, 0.0, upper)
    return Problem(observation, ProbitAffineLikelihood(slip=rate), attentive, rate / 2, 1 - rate)


def _slope(m: int, rate: float, noise: float, g: torch.Generator) -> Problem:
    """Slopes, with noise where some repeat or contradict others."""
    index, sign = torch.arange(m) % NUM_POINTS, torch.randint(2, (m,), generator=g) * 2 - 1
    return Problem(
        Slope(dims=0, signs=sign, index=index),
        SlopeLikelihood(noise if m > NUM_POINTS else 0.0, slip=rate),
        lambda _, slopes: (
            torch.special.ndtr(sign * slopes[:, index] / noise**0.5)
            if m > NUM_POINTS
            else (sign * slopes[:, index] > 0).double()
        ),
        rate / 2,
        1 - rate,
    )


MAKERS = (_label, _guess, _validity, _grade, _duel, _repeated, _judges, _choice, _ranking, _affine, _slope)
# maker, rows, rate, noise, output scale, whether the prior is skewed
TABLE = [
    *[(maker, 5 + i % 4, 0.1, 0.3, 4.0, False) for i, maker in enumerate(MAKERS)],
    *[(maker, 6 + i % 5, 0.3, 0.1, 20.0, False) for i, maker in enumerate(MAKERS)],
    *[(maker, 5, 0.15, 0.5, 4.0, True) for maker in (_label, _grade, _duel, _repeated, _choice, _ranking)],
    (_duel, 12, 0.05, 0.05, 50.0, False),
    (_repeated, 12, 0.02, 1.0, 50.0, False),
]
FAST = [
    MAKERS.index(_guess),
    MAKERS.index(_grade),
    next(i for i, row in enumerate(TABLE) if row[0] is _duel and row[-1]),
]


@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.CompetingExplanationsWarning")
@pytest.mark.parametrize(
    "case", [pytest.param(i, marks=[] if i in FAST else pytest.mark.slow) for i in range(len(TABLE))]
)
def test_exact_form_agrees_with_importance_sampling(case: int) -> None:
    maker, m, rate, noise, outputscale, is_skewed = TABLE[case]
    g = torch.Generator().manual_seed(case)
    x = torch.rand(NUM_POINTS, dtype=torch.double, generator=g).sort().values
    problem = maker(m, rate, noise, g)
    kernel, personal = (ScaleKernel(RBFKernel()) for _ in range(2))
    kernel.outputscale, kernel.base_kernel.lengthscale, personal.outputscale = outputscale, LENGTHSCALE, 1e-6
    pseudo = torch.tensor([0.25, 0.7], dtype=torch.double)

    # values, their slopes, and values at pseudo-points
    at = torch.cat([x, pseudo])
    d, d_slope = at.unsqueeze(-1) - at, at.unsqueeze(-1) - x
    K = outputscale * torch.exp(-0.5 * (d / LENGTHSCALE) ** 2)
    cross = outputscale * torch.exp(-0.5 * (d_slope / LENGTHSCALE) ** 2) * d_slope / LENGTHSCALE**2
    d = x.unsqueeze(-1) - x
    slopes = outputscale * torch.exp(-0.5 * (d / LENGTHSCALE) ** 2) * (1 - (d / LENGTHSCALE) ** 2) / LENGTHSCALE**2
    K = torch.cat([torch.cat([K, cross], 1), torch.cat([cross.mT, slopes], 1)], 0)
    K = K + 1e-9 * torch.diag(K.diagonal())
    root = torch.linalg.cholesky(K)
    sums: dict[str, Tensor] = {}
    num_allowed = 0.0
    for _ in range(8 if maker in (_choice, _ranking, _affine) else 1):  # whose noise is simulated
        y = torch.randn(NUM, len(K), dtype=torch.double, generator=g) @ root.mT
        f, slope = y[:, :NUM_POINTS], y[:, len(at) :]
        answers = problem.slip + problem.guess + problem.gain * problem.attentive(f, slope)
        w = answers.prod(-1)
        if is_skewed:
            allowed = (y[:, NUM_POINTS] > 0) & (y[:, NUM_POINTS + 1] < 0)
            w = w * allowed
            num_allowed += float(allowed.sum())
        else:
            num_allowed += NUM
        terms = {
            "w": w.sum(),
            "w2": w.square().sum(),
            "f": w @ f,
            "f2": w @ f.square(),
            "s": w @ (problem.slip / answers),
        }
        sums = {name: sums.get(name, 0.0) + term for name, term in terms.items()}
    evidence, size = float(sums["w"]) / num_allowed, float(sums["w"].square() / sums["w2"])
    mean, slips = sums["f"] / sums["w"], sums["s"] / sums["w"]
    sd = (sums["f2"] / sums["w"] - mean.square()).sqrt()

    prior = SkewPrior(pseudo.unsqueeze(-1), torch.tensor([1.0, -1.0])) if is_skewed else None
    model, approximate = (
        SkewGP(
            x.unsqueeze(-1),
            problem.observation,
            likelihood=problem.likelihood,
            covar_module=kernel,
            judge_covar_module=personal,
            mean_module=ConstantMean(),
            skew_prior=prior,
            draw_settings=DrawSettings(num_draws=32768),
            approximation=approximation,
        )
        for approximation in (None, "ep")
    )
    error = (1 / size + 1 / float(model.draws.effective_size.min())) ** 0.5  # of a mean, in standard deviations
    off = (model.posterior(x.unsqueeze(-1)).mean.detach().squeeze(-1) - mean).abs() / sd
    assert float(off.max()) < max(0.03, 4 * error)
    assert float((model.slips() - slips).abs().max()) < max(0.01, 2 * error)
    value, standard_error = model.log_marginal_likelihood("exact")
    assert abs(float(value) - math.log(evidence)) < max(0.05, 4 * math.hypot(float(standard_error), size**-0.5))
    assert error < 0.03
    if case in FAST:  # elsewhere explanations may compete
        assert torch.allclose(approximate.slips(), slips, atol=0.25)
        assert bool(((approximate.posterior(x.unsqueeze(-1)).mean.squeeze(-1) - mean).abs() < 0.35 * sd).all())
        assert float(approximate.log_marginal_likelihood("ep").value) == pytest.approx(math.log(evidence), abs=0.5)
