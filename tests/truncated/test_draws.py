"""`draw`: settings, choice of the sampler, diagnostics, thinning, repetition."""

import math
import warnings
from dataclasses import replace

import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from row_cases import INF, make, zeros

from botorch_skewgp.exceptions import PoorDrawsWarning, SkewGPWarning
from botorch_skewgp.papers import LinearEllipticalSliceSampler
from botorch_skewgp.truncated.diagnostics import diagnose
from botorch_skewgp.truncated.draws import (
    Draws,
    DrawSettings,
    _allowed_r_hat,
    _slowest,
    choose_sampler,
    draw,
    expected_reflections,
)
from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.propagation.expectation_propagation import expectation_propagation
from botorch_skewgp.truncated.samplers.hamiltonian import HamiltonianSampler
from botorch_skewgp.truncated.samplers.sampler import RowSampler, SamplerInfo
from botorch_skewgp.truncated.step_factor import Heights
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

SMALL = DrawSettings(num_draws=256)


def smooth_rows(m, noise=0.1, lengthscale=0.3):
    """Positive values of a smooth process: strongly dependent rows."""
    x = torch.linspace(0, 1, m, dtype=torch.float64)
    covariance = torch.exp(-0.5 * ((x.unsqueeze(-1) - x) / lengthscale).square())
    return make(zeros(m), covariance, noise=noise)


def low_rank_rows(m, r, generator, noise=0.5):
    """Many rows over few coordinates, all of whose answers one vector of coordinates explains."""
    root = torch.randn(m, r, dtype=torch.float64, generator=generator)
    root = root * torch.where(root[:, :1] >= 0, 1.0, -1.0).double()
    return make(zeros(m), LowRankPrior(root), noise=noise)


def same(a: Draws, b: Draws) -> bool:
    return torch.equal(a.rows, b.rows) and torch.equal(a.effective_size, b.effective_size)


# Settings


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_draws": 1022}, r"num_draws \(1022\) must be a multiple of num_chains \(4\)"),
        ({"num_draws": 0}, "num_draws must be an integer from 1 to 1000000"),
        ({"num_draws": 10**9}, "num_draws must be an integer from 1 to 1000000"),
        ({"num_draws": "64"}, "num_draws must be an integer"),
        ({"num_draws": 64.0}, "num_draws must be an integer"),
        ({"num_chains": 0}, "num_chains must be an integer of at least 1"),
        ({"num_chains": True}, "num_chains must be an integer"),
        ({"min_effective_size": "a"}, "min_effective_size must be a finite number"),
        ({"min_effective_size": 0}, "min_effective_size must be positive"),
        ({"seed": 2**70}, "seed must be an integer from 0 to"),
        ({"num_draws": 12}, "at least 4 draws.*num_draws = 12 from num_chains = 4"),
        ({"num_draws": 3, "num_chains": 1}, "at least 4 draws"),
        ({"max_thinning": 0}, "max_thinning must be an integer of at least 1"),
        ({"warmup": -1}, "warmup must be an integer of at least 0"),
    ],
)
def test_bad_settings_are_refused(arguments, message):
    with pytest.raises(InputDataError, match=message):
        DrawSettings(**arguments)


@pytest.mark.parametrize(
    ("num_draws", "few", "many"), [(2048, 4, 64), (512, 4, 32), (256, 4, 16), (100, 4, 4), (16, 4, 4)]
)
def test_default_number_of_chains(num_draws, few, many):
    settings = DrawSettings(num_draws=num_draws)
    assert settings.chains_of(side_by_side=False) == few
    assert settings.chains_of(side_by_side=True) == many
    assert DrawSettings(num_draws=num_draws, num_chains=2).chains_of(side_by_side=True) == 2


def autoregression(num_steps, num_chains, time, k, generator):
    """Stationary chains of an autocorrelation time, `num_steps x num_chains x k`."""
    phi = (time - 1) / (time + 1)
    values = [torch.randn(num_chains, k, generator=generator, dtype=torch.float64)]
    for _ in range(num_steps - 1):
        fresh = torch.randn(num_chains, k, generator=generator, dtype=torch.float64)
        values.append(phi * values[-1] + math.sqrt(1 - phi**2) * fresh)
    return torch.stack(values)


@pytest.mark.parametrize("time", [1.0, 2.0])
def test_short_chains_are_allowed_the_r_hat_that_their_autocorrelation_gives_by_chance(time, generator):
    r_hat, bulk = diagnose(autoregression(32, 64, time, 500, generator))  # five sets of a hundred
    assert (r_hat <= _allowed_r_hat(32, 64, (2048 / bulk).clamp(1, 2), 100)).all()


def test_short_chains_that_disagree_are_seen(generator):
    values = autoregression(32, 64, 1.0, 3, generator)
    values[:, :6] += 2  # a mode in which one in ten chains stay
    r_hat, bulk = diagnose(values)
    assert (r_hat > _allowed_r_hat(32, 64, (2048 / bulk).clamp(1, 2), len(bulk))).all()
    assert (bulk < 1024).all()


@pytest.mark.parametrize("fault", ["a mode", "a slow chain", "NaN"])
def test_the_worst_of_many_functionals_are_diagnosed(fault, generator):
    values = autoregression(512, 4, 1.0, 257, generator)
    assert _slowest(values).shape == (512, 4, 16)
    if fault == "NaN":
        values[3, 2, 100] = math.nan
    else:
        slow = autoregression(512, 4, 8.0, 1, generator)[..., 0]
        values[..., 100] = slow if fault == "a slow chain" else values[..., 100] + torch.tensor([0.0, 0.0, 0.0, 0.3])
    values[..., 7] = 1.0
    found = _slowest(values)
    assert (found == values[..., 100:101]).flatten(0, 1).sum(0).amax() >= 2047
    assert not (found == 1).all(0).all(0).any()


def test_chains_of_the_default_on_a_cpu_are_held_to_the_usual_limit():
    assert (_allowed_r_hat(512, 4, torch.full((100,), 2.0), 100) == 1.01).all()


@pytest.mark.parametrize("sampler", ["nuts", "linear", int, RowSampler, HamiltonianSampler])
def test_unknown_sampler_is_refused(sampler):
    with pytest.raises(InputDataError, match=r"sampler must be one of reflective, .* or None; got "):
        DrawSettings(sampler=sampler)


# Which sampler


def test_reflections_are_foretold_by_propagation(generator):
    # labels that contradict each other leave little room: 20 times the reflections of those that agree
    agree = low_rank_rows(40, 3, generator)
    sign = torch.ones(40, dtype=torch.double)
    sign[::2] = -1
    lower, upper = torch.where(sign > 0, 0.0, -INF).double(), torch.where(sign > 0, INF, 0.0).double()
    contradict = replace(agree, lower=lower, upper=upper, noise=0.01 * agree.noise)
    for distribution in (smooth_rows(5), agree, contradict):
        approximation = expectation_propagation(distribution)
        draws = draw(distribution, DrawSettings(num_draws=512, sampler="reflective", min_effective_size=1))
        expected = expected_reflections(distribution, approximation)
        assert float(expected) == pytest.approx(draws.num_evaluations, rel=0.1)
    assert float(expected) > 5 * float(expected_reflections(agree, expectation_propagation(agree)))


def test_refractions_count_for_more(generator):
    """Three hundred answers over few coordinates, which a judge gave with care, or perhaps not."""
    careful = low_rank_rows(300, 6, generator, noise=30.0)
    rate = torch.full_like(careful.mean, 0.05)
    assert choose_sampler(careful) == "reflective"
    careless = replace(careful, heights=Heights(rate / 2, 1 - rate))
    assert choose_sampler(careless) == "hamiltonian"
    assert choose_sampler(replace(careless, noise=1e-6 * careless.noise)) == "reflective"
    assert choose_sampler(replace(careless, noise=0 * careless.noise)) == "reflective"
    with pytest.raises(UnsupportedError, match="may be slips"):
        draw(careless, DrawSettings(sampler=LinearEllipticalSliceSampler))


def test_many_rows_over_few_coordinates_have_their_noise_integrated_out(generator):
    """Also beside few rows without noise, which are walls."""
    distribution = low_rank_rows(8000, 3, generator)
    draws = draw(distribution, SMALL)
    assert draws.sampler == "hamiltonian"
    assert draws.effective_size.shape == (4,)  # three coordinates and their length
    noise = distribution.noise.clone()
    for num_walls, chosen in ((5, "hamiltonian"), (4000, "reflective")):
        noise[:num_walls] = 0
        assert choose_sampler(replace(distribution, noise=noise)) == chosen


def test_trajectories_need_a_gaussian_of_the_posterior(generator):
    distribution = low_rank_rows(8000, 3, generator)
    approximation = expectation_propagation(distribution)
    assert choose_sampler(distribution, approximation) == "hamiltonian"
    for residual in (0.9, float("nan")):
        assert choose_sampler(distribution, replace(approximation, residual=residual)) == "reflective"


def test_narrow_rows_are_numbers():
    wide = smooth_rows(4)
    narrow = replace(wide, upper=wide.lower + 0.001)
    for sampler, used in ((None, "independent"), ("hamiltonian", "hamiltonian")):
        draws = draw(narrow, DrawSettings(num_draws=SMALL.num_draws, sampler=sampler))
        assert draws.sampler == used
        assert ((draws.rows > 0) & (draws.rows <= 0.001)).all()
    assert choose_sampler(replace(wide, upper=wide.lower + 0.005, noise=0 * wide.noise)) == "reflective"


@pytest.mark.slow
def test_effective_size_is_that_of_what_posteriors_average(generator):
    """`E[z | u]`, here from a dense solve, of the draws as they come, not `z`."""
    distribution = low_rank_rows(8, 3, generator, noise=4.0)
    settings = DrawSettings(num_draws=512, min_effective_size=1, sampler=LinearEllipticalSliceSampler)
    draws = draw(distribution, settings, generator)
    gain = torch.linalg.solve(distribution.gamma, distribution.prior.root)
    chains = ((draws.rows - distribution.mean) @ gain).unflatten(0, (4, -1)).transpose(0, 1)
    expected = diagnose(chains).bulk_effective_size
    torch.testing.assert_close(draws.effective_size[:3], expected, rtol=1e-6, atol=1e-6)


def test_a_row_of_zeros_without_noise_is_refused():
    covariance = torch.block_diag(torch.eye(1), torch.zeros(1, 1), torch.eye(1)).double()
    with pytest.raises(ValueError, match=r"Rows \[1\] have neither variance nor noise.*Leave them out"):
        draw(make(zeros(3), covariance), SMALL)


@pytest.mark.parametrize("sampler", ["reflective", "hamiltonian", LinearEllipticalSliceSampler])
def test_every_sampler_by_name(sampler):
    """Two rows, whose mean is known: `E[u_1 | u > 0] = (1 + rho) / (2 sqrt(2 pi) P)`."""
    rho = 0.6
    covariance = torch.tensor([[0.7, rho], [rho, 0.7]], dtype=torch.float64)
    distribution = make(zeros(2), covariance, noise=0.3)
    draws = draw(distribution, DrawSettings(num_draws=512, sampler=sampler))
    assert draws.sampler == (sampler if isinstance(sampler, str) else "LinearEllipticalSliceSampler")
    mean = (1 + rho) / (2 * math.sqrt(2 * math.pi) * (0.25 + math.asin(rho) / (2 * math.pi)))
    error = draws.rows.std(0) / draws.effective_size[:2].clamp(max=512).sqrt()
    assert ((draws.rows.mean(0) - mean).abs() < 4 * error).all()


# What comes out


def test_default_settings_are_met():
    draws = draw(smooth_rows(30))
    assert draws.num_draws == 2048
    assert draws.num_chains == 4
    assert draws.effective_size.min() >= 512
    assert draws.r_hat.max() < 1.01
    assert draws.num_evaluations > 0
    assert (draws.rows > 0).all()


def test_no_rows_have_no_draws():
    draws = draw(TruncatedNormal.empty(torch.zeros(2, dtype=torch.float64)), SMALL)
    assert draws.rows.shape == (256, 0)
    assert draws.num_draws == 256
    assert draws.sampler == "none"


# Repetition


def test_draws_depend_on_the_seed_and_the_problem_alone():
    distribution = smooth_rows(6)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = draw(distribution, SMALL)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    assert same(first, draw(distribution, SMALL))
    other = draw(distribution, DrawSettings(num_draws=256, seed=1))
    assert not torch.equal(first.rows, other.rows)
    assert torch.equal(draw(distribution, SMALL, torch.Generator().manual_seed(1)).rows, other.rows)
    ep = expectation_propagation(distribution, tolerance=1e-3)  # what draw makes for itself
    assert same(first, draw(distribution, SMALL, approximation=ep))


# Running longer


def test_poor_draws_are_reported():
    short = {"num_draws": 64, "max_thinning": 2, "warmup": 0, "min_effective_size": 60}
    settings = DrawSettings(sampler=LinearEllipticalSliceSampler, **short)
    pattern = (
        "by the LinearEllipticalSliceSampler sampler are poor: .* are not what was asked for. "
        r"Raise max_thinning or num_draws, or use DrawSettings\(sampler=\"reflective\"\)\."
    )
    with pytest.warns(PoorDrawsWarning, match=pattern):
        draws = draw(smooth_rows(60, noise=1e-4, lengthscale=0.5), settings)  # where plain slices move slowly
    assert draws.thinning == 2
    assert draws.effective_size.min() < 60
    assert issubclass(PoorDrawsWarning, SkewGPWarning)


def test_slips_of_rows_without_noise_contradict_nothing():
    """Independent rows, one far beyond its bound: the share of draws inside follows from Bayes' rule."""
    mean, one = torch.tensor([-4.0, -1.0, 0.5], dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    draws = draw(replace(make(mean, torch.diag(one)), heights=Heights(0.05 * one, 0.9 * one)))
    attentive, slip = 0.95 * torch.special.ndtr(mean), 0.05 * torch.special.ndtr(-mean)
    share = attentive / (attentive + slip)
    error = (share * (1 - share) / draws.effective_size.min()).sqrt()
    assert (((draws.rows > 0).double().mean(0) - share).abs() < 4.5 * error).all()


class Still(RowSampler):
    """A sampler that does not move."""

    def step(self, state, generator=None):
        return state, SamplerInfo(torch.zeros(len(state.position)))


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_chains_that_never_leave_their_start_are_poor(noise):
    """Which all have in common where rows have no noise."""
    with pytest.warns(PoorDrawsWarning, match="sampler are poor"):
        assert (draw(smooth_rows(5, noise), replace(SMALL, sampler=Still)).r_hat == INF).all()


class Counting:
    """A sampler whose position is the number of steps made so far, and 1000 for each chain before."""

    def __init__(self, m, chains):
        self.m, self.chains, self.steps = m, chains, 0

    def init(self, start):
        return None

    def run(self, state, num_steps, generator):
        steps = torch.arange(self.steps + 1, self.steps + num_steps + 1, dtype=torch.float64)
        self.steps += num_steps
        chain = 1000 * torch.arange(self.chains, dtype=torch.float64)
        positions = (steps.unsqueeze(-1) + chain).unsqueeze(-1).expand(num_steps, self.chains, self.m).clone()
        return None, positions, type("Info", (), {"num_evaluations": torch.ones(()), "scores": None})

    def rows(self, positions, generator):
        return positions


@pytest.mark.parametrize("num_draws", [64, 60, 20])
def test_thinning_keeps_equidistant_steps(num_draws, monkeypatch):
    """Chain after chain; also where the number of draws in a chain is no multiple of the thinning."""
    counting = Counting(2, 4)
    monkeypatch.setattr("botorch_skewgp.truncated.draws.ReflectiveEllipticalSliceSampler", lambda _: counting)
    settings = DrawSettings(num_draws=num_draws, sampler="reflective", max_thinning=8, warmup=3, min_effective_size=1e6)
    with pytest.warns(PoorDrawsWarning, match=r"asked for\. Raise max_thinning or num_draws\.$"):
        draws = draw(smooth_rows(2), settings)
    length = num_draws // 4
    chains = draws.rows.view(4, length, 2)[..., 0]
    chain = chains[0]
    assert torch.equal(chains - chain, 1000 * torch.arange(4.0).double().unsqueeze(-1).expand(4, length))
    assert torch.equal(chain.diff(), torch.full((length - 1,), 8.0).double())
    # the last run starts after warm-up and the runs of thinning 1, 2, 4
    assert float(chain[0]) == 3 + 7 * length + 8
    assert float(chain[-1]) == counting.steps


def test_constant_functional_is_no_reason_for_a_warning():
    """A row without variance has R-hat NaN by definition."""
    covariance = torch.diag(torch.tensor([1.0, 0.0], dtype=torch.float64))
    distribution = make(zeros(2), covariance, noise=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PoorDrawsWarning)
        assert draw(distribution, SMALL).thinning == 1
