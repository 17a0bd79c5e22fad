"""Rows that stand for several equal ones."""

from dataclasses import replace

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from scipy import stats

from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.truncated.draws import DrawSettings, draw, noiseless_given_rows
from botorch_skewgp.truncated.evidence import bridge_log_normalizer
from botorch_skewgp.truncated.gaussian_rows import gaussian_rows
from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.samplers.hamiltonian import HamiltonianSampler
from botorch_skewgp.truncated.step_factor import Heights
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

INF = torch.inf
COUNT = torch.tensor([3.0, 1.0, 40.0, 7.0, 2.0], dtype=torch.float64)
LOWER = torch.tensor([0.0, -INF, 0.2, -0.5, -1.0], dtype=torch.float64)
UPPER = torch.tensor([INF, 0.3, INF, 0.8, INF], dtype=torch.float64)


def distribution_of(root, mean, noise, count=COUNT, lower=LOWER, upper=UPPER) -> TruncatedNormal:
    return TruncatedNormal(mean, LowRankPrior(root), lower, upper, noise, count)


def expanded(distribution) -> TruncatedNormal:
    """The same with every row for itself."""
    return distribution.select(torch.arange(5).repeat_interleave(COUNT.long()))


def parts(generator) -> list[torch.Tensor]:
    root, mean = (torch.randn(*shape, dtype=torch.float64, generator=generator) for shape in ((5, 2), (5,)))
    return [root, mean, 0.3 + torch.rand(5, dtype=torch.float64, generator=generator)]


def test_expectation_propagation_is_that_of_all_rows(generator):
    values = [part.requires_grad_() for part in parts(generator)]
    counted = expectation_propagation(distribution_of(*values))
    every = expectation_propagation(expanded(distribution_of(*values)))
    assert every.distribution.num_rows == COUNT.sum()
    assert counted.log_normalizer.item() == pytest.approx(every.log_normalizer.item(), abs=1e-7)
    assert torch.allclose(counted.product.latent_mean, every.product.latent_mean, atol=1e-7)
    assert torch.allclose(counted.base, every.base, atol=1e-6)
    gradients = [torch.autograd.grad(entry.log_normalizer, values) for entry in (counted, every)]
    for mine, theirs in zip(*gradients, strict=True):
        assert torch.allclose(mine, theirs, atol=1e-6)
    corrected = [corrected_log_normalizer(entry.distribution).item() for entry in (counted, every)]
    assert corrected[0] == pytest.approx(corrected[1], abs=1e-7)


def test_potential_is_that_of_all_rows(generator):
    counted, found = distribution_of(*parts(generator)), []
    for distribution in (counted, expanded(counted)):
        sampler = HamiltonianSampler(distribution, expectation_propagation(distribution))
        w, log_weight = sampler.propose(100, torch.Generator().manual_seed(0))
        found.append(torch.cat([w, (log_weight - log_weight.mean()).unsqueeze(0), sampler.potential(w)[1]]))
    torch.testing.assert_close(*found, rtol=0, atol=1e-5)


def test_draws_and_evidence_are_those_of_all_rows(generator):
    distribution = distribution_of(*parts(generator))
    every = expanded(distribution)
    settings = DrawSettings(num_draws=2048, num_chains=8)
    found, expected = draw(distribution, settings), draw(every, settings)
    assert found.sampler == "hamiltonian"
    assert found.rows.shape == (2048, 5)
    group = torch.arange(5).repeat_interleave(COUNT.long())
    of_groups = torch.zeros(2048, 5, dtype=torch.float64).index_add(-1, group, expected.rows) / COUNT

    def compare(one, other):
        sizes = [entry.effective_size.min() for entry in (found, expected)]
        error = (one.var(0) / sizes[0] + other.var(0) / sizes[1]).sqrt()
        assert ((one.mean(0) - other.mean(0)).abs() <= 4.5 * error).all()

    for power in (1, 2, 3):
        compare(found.rows.pow(power), of_groups.pow(power))
    mine, theirs = bridge_log_normalizer(distribution, found), bridge_log_normalizer(every, expected)
    error = mine.standard_error.hypot(theirs.standard_error)
    assert (mine.value - theirs.value).abs() <= 4.5 * error


@pytest.mark.parametrize("may_slip", [False, True])
def test_draws_of_weights_are_those_of_importance_sampling(may_slip, generator):
    root, mean, noise = parts(generator)
    count = torch.tensor([0.2, 0.7, 1.0, 2.6, 0.1], dtype=torch.float64)
    heights = Heights(torch.full_like(mean, 0.1), torch.full_like(mean, 0.8)) if may_slip else None
    distribution = replace(distribution_of(3 * root, mean, noise, count), heights=heights)
    found = draw(distribution, DrawSettings(num_draws=16_384), generator)
    h = noiseless_given_rows(distribution, found.rows, generator)
    prior = distribution.noiseless(torch.randn(2**17, 2, dtype=torch.float64, generator=generator))
    bounds = ((bound - prior) / noise.sqrt() for bound in (LOWER, UPPER))
    inside = -torch.sub(*(torch.special.ndtr(bound) for bound in bounds))
    likelihood = 0.1 + 0.8 * inside if may_slip else inside
    weight = likelihood.pow(count).prod(-1)
    weight = weight / weight.sum()
    center = weight @ prior
    for power in (1, 2):
        values, expected = ((part - center).pow(power) for part in (h, prior))
        right = weight @ expected
        error = (values.var(0) / found.effective_size.min()).add(weight.square() @ (expected - right).square()).sqrt()
        assert ((values.mean(0) - right).abs() <= 4.5 * error).all()


def test_rows_of_little_noise_are_drawn_one_by_one(generator):
    # by quadrature: with prior variance v of h, rows u_i = h + e_i > 0 all have the mean E[h + hazard(h)]
    sd, count = 300.0, torch.tensor([3.0, 5.0], dtype=torch.float64)
    zero = torch.zeros(2, dtype=torch.float64)
    root = sd * torch.eye(2, dtype=torch.float64)
    upper, lower = torch.tensor([INF, 0.0]).double(), torch.tensor([0.0, -INF]).double()
    draws = draw(TruncatedNormal(zero, LowRankPrior(root), lower, upper, zero + 1, count), generator=generator)
    assert draws.sampler == "reflective"
    assert draws.rows.shape == (2048, 2)
    h = torch.linspace(-10, 6 * sd, 200_001, dtype=torch.float64)
    log_cdf = torch.special.log_ndtr(h)
    hazard = torch.exp(-0.5 * h.square() - log_cdf) / (2 * torch.pi) ** 0.5
    for rows, c, sign in zip(draws.rows.mT, count, (1, -1), strict=True):
        weight = torch.softmax(c * log_cdf - 0.5 * (h / sd).square(), 0)
        mean = float(weight @ (h + hazard))
        error = float(rows.std()) / (0.5 * len(rows)) ** 0.5
        assert abs(sign * float(rows.mean()) - mean) < 4 * error
        spread = float((weight @ (h + hazard - mean).square()).sqrt())
        assert float(rows.std()) == pytest.approx(spread, rel=0.1)


def test_means_of_rows_far_in_a_tail(generator):
    """Without latent variation the mean of `k` copies is one of `k` truncated normals."""
    root = torch.full((3, 1), 1e-6, dtype=torch.float64)
    mean = torch.tensor([-100.0, 3.0, -8.0], dtype=torch.float64)
    lower, upper = torch.tensor([0.0, -INF, 0.0]).double(), torch.tensor([INF, 0.0, INF]).double()
    count = torch.tensor([5.0, 5.0, 60.0]).double()
    distribution = distribution_of(root, mean, torch.ones(3).double(), count, lower, upper)
    sampler = HamiltonianSampler(distribution, expectation_propagation(distribution))
    rows = sampler.rows(torch.zeros(20_000, 1, dtype=torch.float64), generator)
    for i in range(3):
        law = stats.truncnorm(*((bound[i] - mean[i]).item() for bound in (lower, upper)), loc=mean[i].item())
        first, variance, skewness = (float(x) for x in law.stats("mvs"))
        k = count[i].item()
        assert rows[:, i].mean().item() == pytest.approx(first, abs=4.5 * (variance / k / 20_000) ** 0.5)
        assert rows[:, i].var().item() == pytest.approx(variance / k, rel=0.1)
        if i:
            assert stats.skew(rows[:, i]) == pytest.approx(skewness / k**0.5, abs=0.12)


def test_what_cannot_be(generator):
    root, mean, noise = parts(generator)
    with pytest.raises(ValueError, match="positive numbers"):
        distribution_of(root, mean, noise, 0 * COUNT)
    with pytest.raises(ValueError, match="need noise"):
        distribution_of(root, mean, 0 * noise)
    with pytest.raises(UnsupportedError, match="single rows"):
        draw(distribution_of(root, mean, noise), DrawSettings(sampler="reflective"))
    assert not gaussian_rows(expectation_propagation(distribution_of(root, mean, noise))).any()


@pytest.mark.parametrize("may_slip", [False, True])
def test_rows_that_all_stand_for_one_are_drawn_like_single_ones(may_slip, generator):
    root, mean, noise = parts(generator)
    heights = Heights(torch.full_like(mean, 0.05), torch.full_like(mean, 0.9)) if may_slip else None
    single = distribution_of(root, mean, noise, None, upper=torch.where(LOWER.isfinite(), INF, UPPER))
    single, settings = replace(single, heights=heights), DrawSettings(num_draws=256, sampler="hamiltonian")
    counted = draw(replace(single, count=torch.ones_like(mean)), settings)
    assert torch.equal(draw(single, settings).rows, counted.rows)
