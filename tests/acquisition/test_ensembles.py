"""Acquisition functions of ensembles: averages over members where the mathematics says so, by another computation."""

import math
from copy import deepcopy
from functools import partial

import pytest
import torch
from acquisition_checks import BOUNDS, DOUBLE, PAIRS, POINTS, check_acquisition, gain, points
from botorch.sampling.normal import SobolQMCNormalSampler

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import (
    DuelingLogExpectedImprovement,
    LevelSetInformation,
    LogProbabilityOfValidity,
    PredictiveInformation,
    QuantileBound,
    SkewBayesianActiveLearningByDisagreement,
    SkewLogExpectedImprovement,
    SkewLogNoisyExpectedImprovement,
    SkewLogProbabilityOfImprovement,
    ValidityConstraint,
    next_pair,
    recommend,
)
from botorch_skewgp.likelihoods import PreferenceLikelihood, ValidityLikelihood
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Preference, Validity
from botorch_skewgp.papers.dueling import (
    DuelingThompsonSampling,
    DuelingUpperCredibleBound,
    ExpectedImprovementInformationGain,
)
from botorch_skewgp.papers.safety import PenalizedUpperConfidenceBound
from botorch_skewgp.truncated.draws import DrawSettings

MEMBERS = ((0.15, 1.0, 0.05), (0.4, 4.0, 0.3), (1.2, 8.0, 1.0))  # lengthscale, outputscale, noise


def member(observations, likelihood, lengthscale, outputscale) -> SkewGP:
    model = SkewGP(POINTS, observations, likelihood=likelihood, draw_settings=DrawSettings(num_draws=256))
    model.covar_module.outputscale = outputscale
    model.covar_module.base_kernel.lengthscale = lengthscale
    return model


@pytest.fixture(scope="module")
def duels() -> FullyBayesianSkewGP:
    return FullyBayesianSkewGP([member(Preference(PAIRS), PreferenceLikelihood(n), ls, s) for ls, s, n in MEMBERS])


@pytest.fixture(scope="module")
def validity() -> FullyBayesianSkewGP:
    worked = Validity(torch.tensor([1, 0, 1, 1, 0, 1, 1]))
    return FullyBayesianSkewGP(
        [member(worked, ValidityLikelihood(threshold=0.5 - n, noise=n), ls, s) for ls, s, n in MEMBERS]
    )


def over_members(ensemble, make, X):
    return torch.stack([make(model)(X) for model in ensemble.members])


REFERENCE = POINTS[0]
sampler = partial(SobolQMCNormalSampler, torch.Size([64]), seed=0)
OF_DUELS = {
    "expected improvement": lambda m: SkewLogExpectedImprovement(m, best_f=0.3),
    "probability of improvement": lambda m: SkewLogProbabilityOfImprovement(m, best_f=0.3),
    "noisy expected improvement": lambda m: SkewLogNoisyExpectedImprovement(m, POINTS),
    "quantile": lambda m: QuantileBound(m, 0.9),
    "dueling expected improvement": lambda m: DuelingLogExpectedImprovement(m, REFERENCE),
    "credible bound": lambda m: DuelingUpperCredibleBound(m, REFERENCE, sampler=sampler()),
    "information gain": lambda m: ExpectedImprovementInformationGain(m, REFERENCE, sampler=sampler()),
    "thompson": lambda m: DuelingThompsonSampling(m, REFERENCE, generator=torch.Generator().manual_seed(0)),
    "information": SkewBayesianActiveLearningByDisagreement,
    "information about other duels": lambda m: PredictiveInformation(m, POINTS[:6].view(3, 2, 2) + 0.03),
}
OF_VALIDITY = {
    "validity": LogProbabilityOfValidity,
    "penalised bound": lambda m: PenalizedUpperConfidenceBound(m, level=0.9, penalty=10.0),
    "information of validity": SkewBayesianActiveLearningByDisagreement,
    "information on a level set": lambda m: LevelSetInformation(m, 0.7, POINTS + 0.03),
    "information about predictions": lambda m: PredictiveInformation(m, POINTS + 0.03),
}
NUM_POINTS = {"information": 2, "information about other duels": 2}


@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.FewAnswersWarning")
@pytest.mark.parametrize("name", [*OF_DUELS, *OF_VALIDITY])
def test_conformance(duels, validity, name, generator):
    make, ensemble = (OF_DUELS[name], duels) if name in OF_DUELS else (OF_VALIDITY[name], validity)
    q = NUM_POINTS.get(name, 1)
    X = points(generator, 3, 2, q=q)
    check_acquisition(make(ensemble), X, atol=1e-9, least_gradient=1e-5, everywhere=False, step=1e-6)
    first = ensemble.members[0]
    torch.testing.assert_close(make(FullyBayesianSkewGP([first]))(X), make(first)(X), rtol=1e-9, atol=1e-11)
    assert (make(ensemble)(X) - make(first)(X)).abs().max() > 1e-3 or name == "thompson"
    with pytest.raises(AssertionError, match=f"q={q}"):
        make(first)(points(generator, 3, q=q + 1))
    if name != "thompson":  # whose path is drawn when built
        values = deepcopy(make(first)).to(torch.float32)(X[0].float())
        assert values.dtype == torch.float32
        assert values.isfinite().all()


@pytest.mark.parametrize("name", [name for name in OF_DUELS if name.endswith("improvement")])
def test_logarithms_of_averages(duels, name, generator):
    X = points(generator, 5)
    expected = over_members(duels, OF_DUELS[name], X).logsumexp(0) - math.log(len(duels.members))
    torch.testing.assert_close(OF_DUELS[name](duels)(X), expected, rtol=1e-9, atol=1e-11)


def test_quantile_of_all_members(duels, validity, generator):
    X = points(generator, 5)
    bound = QuantileBound(duels, 0.9)(X)
    below = torch.stack([m.posterior(X).cdf(bound.reshape(5, 1, 1)).flatten() for m in duels.members]).mean(0)
    torch.testing.assert_close(below, torch.full((5,), 0.9, dtype=DOUBLE), rtol=1e-9, atol=0)
    probability = over_members(validity, LogProbabilityOfValidity, X).exp().mean(0)
    penalised = PenalizedUpperConfidenceBound(validity, level=0.9, penalty=10.0, probability=0.9)(X)
    lack = (0.9 - probability).clamp(min=0)
    torch.testing.assert_close(penalised, QuantileBound(validity, 0.9)(X) - 10 * lack.square())


@pytest.mark.parametrize("probability", [0.5, 0.95])
def test_credible_interval_is_the_narrowest_of_the_mixture(duels, probability, generator):
    X = points(generator, 3)
    sampler = SobolQMCNormalSampler(torch.Size([2**15]), seed=0)
    acquisition = DuelingUpperCredibleBound(duels, REFERENCE, probability, sampler)
    upper, difference = acquisition(X), [acquisition.difference(m, X) for m in duels.members]
    grid = torch.linspace(-12, 12, 24_001, dtype=DOUBLE)
    cdf = torch.stack([d.cdf(grid).reshape(len(grid), 3) for d in difference]).mean(0)
    for i in range(3):
        enough = cdf[:, i] <= 1 - probability
        end = torch.searchsorted(cdf[:, i].contiguous(), cdf[enough, i] + probability).clamp(max=len(grid) - 1)
        width = grid[end] - grid[enough]
        mine = torch.searchsorted(cdf[:, i].contiguous(), cdf[torch.searchsorted(grid, upper[i]), i] - probability)
        assert upper[i] - grid[mine] < width.min() + 5e-3


def entropy(p):
    return torch.special.entr(p) + torch.special.entr(1 - p)


@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.FewAnswersWarning")  # few labels are quick
@pytest.mark.parametrize("kind", ["duels", "validity"])
def test_information_about_the_function_and_the_hyperparameters(duels, validity, kind, generator):
    """`I(y; f, h) = H(y) - E[H(y | h) - I(y; f | h)]`, from the members' predictions and information."""
    ensemble = duels if kind == "duels" else validity
    X = points(generator, 5, q=2 if kind == "duels" else 1)
    p = torch.stack([m.predictive(X).probs.reshape(5) for m in ensemble.members])
    own = over_members(ensemble, SkewBayesianActiveLearningByDisagreement, X)
    value = SkewBayesianActiveLearningByDisagreement(ensemble)(X)
    torch.testing.assert_close(value, entropy(p.mean(0)) - (entropy(p) - own).mean(0), rtol=1e-8, atol=1e-10)
    assert (value > own.mean(0) + 1e-6).all()


def test_pending_information_obeys_the_chain_rule(validity, generator):
    a = points(generator)
    b = a + 0.05

    def information(X, pending=None):
        return SkewBayesianActiveLearningByDisagreement(validity, X_pending=pending)(X)

    first, second = information(a), information(b)
    torch.testing.assert_close(first + information(b, a), second + information(a, b), rtol=0, atol=5e-3)
    assert (information(b, a) < second - 0.01).all()


def test_information_gain_of_the_papers_is_information(duels, generator):
    X = points(generator, 4)
    sampler = SobolQMCNormalSampler(torch.Size([8192]), seed=0)
    gain = ExpectedImprovementInformationGain(duels, REFERENCE, k=0.0, sampler=sampler)(X)
    pairs = torch.cat([X, REFERENCE.expand_as(X)], dim=-2)
    torch.testing.assert_close(gain, SkewBayesianActiveLearningByDisagreement(duels)(pairs), rtol=0, atol=5e-3)


def test_path_is_that_of_a_member(duels, generator):
    X, seeds = points(generator, 5), range(4)
    paths = [DuelingThompsonSampling(duels, REFERENCE, generator=torch.Generator().manual_seed(i)) for i in seeds]
    chosen = {int(torch.randint(3, (), generator=torch.Generator().manual_seed(i))) for i in seeds}
    assert chosen == {0, 1, 2}
    for i, path in zip(seeds, paths, strict=True):
        same = torch.Generator().manual_seed(i)
        which = int(torch.randint(3, (), generator=same))
        torch.testing.assert_close(path(X), DuelingThompsonSampling(duels.members[which], REFERENCE, generator=same)(X))


@pytest.mark.parametrize("kind", ["duels", "validity"])
def test_gain_by_monte_carlo(duels, validity, kind, generator):
    """Averages over joint samples of all members, weighted by the probability of the outcome given the sample."""
    ensemble, k = (duels, 2) if kind == "duels" else (validity, 1)
    X, N = points(generator, 3, q=k) if k == 2 else POINTS[:3].unsqueeze(-2) + 0.02, 40_000
    for x in X:
        joint, parts = torch.cat([x, POINTS[:3]]), []
        value = gain(ensemble, x.unsqueeze(0), joint, Preference if k == 2 else Validity)
        for m in ensemble.members:
            f = SobolQMCNormalSampler(torch.Size([N]), seed=1)(m.posterior(joint)).squeeze(-1)
            p = m.likelihood(f[:, :2] if kind == "duels" else f[:, 0]).probs.unsqueeze(-1)
            parts.append(torch.stack([(f * p).mean(0), (f * (1 - p)).mean(0)]))
        means = torch.stack(parts).mean(0)
        expected = means.amax(-1).sum() - means.sum(0).amax()
        assert abs(value - expected) < 1e-3


@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.FewAnswersWarning")  # few labels are quick
def test_average_probability_of_validity(validity, generator):
    X = points(generator, 5)
    probability = torch.stack([m.predictive(X).probs.flatten() for m in validity.members])
    assert (probability[0] - probability[2]).abs().max() > 0.05
    torch.testing.assert_close(LogProbabilityOfValidity(validity)(X).exp(), probability.mean(0))


def test_constraint_uses_every_members_threshold(validity, generator):
    samples = torch.randn(6, 5, 3, 2, 1, generator=generator, dtype=DOUBLE)  # samples x batch x members x q x outputs
    constraint = ValidityConstraint(validity)
    for i, model in enumerate(validity.members):
        expected = model.likelihood(samples[:, :, i].squeeze(-1)).probs
        torch.testing.assert_close(constraint.probability(samples)[:, :, i], expected)
        torch.testing.assert_close((-constraint(samples)[:, :, i] / constraint.eta).sigmoid(), expected)


def test_recommendation_is_the_best_of_the_average_means(duels):
    best, value = recommend(duels)
    means = torch.stack([m.posterior(POINTS).mean.squeeze(-1) for m in duels.members]).mean(0)
    assert torch.equal(best[0], POINTS[means.argmax()])
    torch.testing.assert_close(value, means.max())
    few = {"num_restarts": 1, "raw_samples": 8, "options": {"maxiter": 3}}
    assert torch.equal(next_pair(duels, BOUNDS, against=best, **few)[0][1], best[0])
