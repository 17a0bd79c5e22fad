"""Thresholds against known functions, quantiles of the posterior, and functions drawn and solved one by one."""

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import InputPerturbation, Normalize

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import LogProbabilityOfValidity
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    ProbitLikelihood,
    SlopeLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Binary, Numeric, Preference, Slope, Validity
from botorch_skewgp.thresholds import PsychometricFunction, threshold
from botorch_skewgp.truncated.draws import DrawSettings

pytestmark = pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.FewAnswersWarning")  # few labels are quick

DOUBLE = torch.float64
SETTINGS = DrawSettings(num_draws=512)


def tensor(values):
    return torch.tensor(values, dtype=DOUBLE)


def latent(X):
    """Rises in the second input; reaches `c` at `.5 - .3 x0 + c / 4`."""
    return 4 * (X[..., 1] - 0.5 + 0.3 * X[..., 0])


def labels_model(n=25, seed=1, **options) -> SkewGP:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 2, generator=generator, dtype=DOUBLE)
    y = torch.rand(n, generator=generator, dtype=DOUBLE) < torch.special.ndtr(latent(X))
    model = SkewGP(X, Binary(y), draw_settings=SETTINGS, **options)
    model.covar_module.outputscale = 4.0
    model.covar_module.base_kernel.lengthscale = 0.8
    return model


def known_model(sign=1.0, **options) -> SkewGP:
    """Numbers without noise tell the latent function, so that its threshold is known."""
    grid = torch.cartesian_prod(*[torch.linspace(0, 1, 8, dtype=DOUBLE)] * 2)
    likelihood = MixedLikelihood(NumericLikelihood(noise=1e-4), ProbitLikelihood(noise=0.5))
    observations = [Numeric(sign * latent(grid)), Binary(tensor([1.0]).bool(), index=[63 if sign > 0 else 0])]
    model = SkewGP(grid, observations, likelihood=likelihood, draw_settings=SETTINGS, **options)
    model.covar_module.outputscale = 9.0
    model.covar_module.base_kernel.lengthscale = 1.0
    return model


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("level", [0.5, 0.75])
def test_known_function(sign, level):
    X = tensor([[0.0, 9.0], [0.4, -1.0], [1.0, 0.0]])
    found = threshold(known_model(sign), X, level, dim=1, bounds=(0.0, 1.0) if sign > 0 else (1.0, 0.0))
    c = sign * 0.5**0.5 * torch.special.ndtri(tensor(level))
    expected = 0.5 - 0.3 * X[:, 0] + c / 4
    for part in found[:3]:
        torch.testing.assert_close(part, expected, rtol=0, atol=4e-3)  # the noise of numbers is 0.01, the slope 4
    assert (found.lower <= found.median).all()
    assert (found.median <= found.upper).all()
    assert (found.below == 0).all()
    assert (found.above == 0).all()


def test_low_values_are_valid():
    """Of a model of which low values are good, validity is lost where the function rises above its limit."""
    grid = torch.cartesian_prod(*[torch.linspace(0, 1, 8, dtype=DOUBLE)] * 2)
    likelihood = MixedLikelihood(NumericLikelihood(noise=1e-4), ValidityLikelihood(threshold=0.2, noise=0.1))
    observations = [Numeric(latent(grid)), Validity([1], index=[63])]
    model = type("Model", (SkewGP,), {"minimize": True})(
        grid, observations, likelihood=likelihood, draw_settings=SETTINGS
    )
    model.covar_module.outputscale = 9.0
    model.covar_module.base_kernel.lengthscale = 1.0
    found = threshold(model, tensor([[0.4, 0.0]]), 0.5, dim=1, bounds=(1.0, 0.0))
    torch.testing.assert_close(found.median, tensor([0.5 - 0.3 * 0.4 + 0.2 / 4]), rtol=0, atol=4e-3)


def test_outside_of_the_bounds():
    model, X = known_model(), tensor([[0.5, 0.0]])
    for bounds in ((0.6, 1.0), (1.0, 0.6)):  # above the level throughout
        found = threshold(model, X, 0.5, 1, bounds)
        is_below = bounds[0] < bounds[1]
        assert found.below.item() == float(is_below)
        assert found.above.item() == float(not is_below)
        assert found.median.item() == (-torch.inf if is_below else torch.inf)
    for bounds in ((0.0, 0.2), (0.2, 0.0)):  # below it throughout
        found = threshold(model, X, 0.5, 1, bounds)
        is_above = bounds[0] < bounds[1]
        assert found.above.item() == float(is_above)
        assert found.below.item() == float(not is_above)
        assert found.lower.item() == found.upper.item() == (torch.inf if is_above else -torch.inf)


def test_first_of_several_crossings():
    x = torch.linspace(0, 1, 41, dtype=DOUBLE).unsqueeze(-1)
    wave = torch.sin(12 * x[:, 0]) - 0.2  # first reaches 0 going up at asin(.2) / 12
    likelihood = MixedLikelihood(NumericLikelihood(noise=1e-4), ProbitLikelihood())
    model = SkewGP(
        x, [Numeric(wave), Binary(tensor([1.0]).bool(), index=[5])], likelihood=likelihood, draw_settings=SETTINGS
    )
    model.covar_module.base_kernel.lengthscale = 0.15
    first = tensor(0.2).asin().item() / 12
    upward, downward = (threshold(model, x[:1], 0.5, 0, bounds).median.item() for bounds in ((0.0, 1.0), (0.9, 0.0)))
    assert abs(upward - first) < 1e-3
    assert abs(downward - (3 * torch.pi - 12 * first) / 12) < 1e-3  # where the second arch ends


def crossings_one_by_one(model, row, level, N, generator):
    """Functions drawn on a fine grid, each solved by itself."""
    x = row.repeat(401, 1)
    x[:, 1] = torch.linspace(0, 1, 401, dtype=DOUBLE)
    posterior = model.latent_posterior(x)
    base = torch.randn(N, *posterior.base_sample_shape, generator=generator, dtype=DOUBLE)
    f = posterior.rsample_from_base_samples(torch.Size([N]), base).squeeze(-1).detach()
    p = torch.special.ndtr(f / model.likelihood.noise.sqrt().detach())
    found = []
    for function in p:
        above = (function >= level).nonzero()
        found.append(torch.inf if not len(above) else -torch.inf if above[0] == 0 else float(x[above[0], 1] - 1 / 800))
    return tensor(found)


def test_against_functions_one_by_one(generator):
    model, N = labels_model(), 4000
    X = tensor([[0.1, 0.0], [0.9, 0.0]])
    found = threshold(model, X, 0.75, 1, (0.0, 1.0), probability=0.8, num_draws=4096)
    for i, row in enumerate(X):
        expected = crossings_one_by_one(model, row, 0.75, N, generator)
        for value, share in ((found.median[i], 0.5), (found.lower[i], 0.1), (found.upper[i], 0.9)):
            if value.isinf():
                continue  # shares beyond the bounds come next
            below = (expected <= value + 1 / 800).double().mean()  # the share of other draws below the quantile
            error = (share * (1 - share) * (1 / N + 1 / 2000)) ** 0.5
            assert abs(below - share) < 4.5 * error + 0.01
        for value, share in ((found.below[i], expected == -torch.inf), (found.above[i], expected == torch.inf)):
            share = share.double().mean()
            assert abs(value - share) < 4.5 * ((share * (1 - share) + 1e-4) * (1 / N + 1 / 2000)) ** 0.5
    assert 0.0 < found.above[0] < 1


def test_of_rising_functions():
    """The threshold of a function that rises is below t where f(t) is above the level: a marginal probability."""
    generator = torch.Generator().manual_seed(5)
    x = torch.rand(30, 1, generator=generator, dtype=DOUBLE)
    y = torch.rand(30, generator=generator, dtype=DOUBLE) < torch.special.ndtr(6 * (x[:, 0] - 0.5))
    slopes = torch.linspace(0, 1, 40, dtype=DOUBLE).unsqueeze(-1)
    likelihood = MixedLikelihood(ProbitLikelihood(), SlopeLikelihood(noise=1e-3))
    rising = Slope(torch.zeros(40, dtype=torch.long), torch.ones(40), index=torch.arange(30, 70))
    model = SkewGP(torch.cat([x, slopes]), [Binary(y, index=torch.arange(30)), rising], likelihood=likelihood,
                   draw_settings=DrawSettings(num_draws=2048))  # fmt: skip
    model.covar_module.outputscale = 9.0
    model.covar_module.base_kernel.lengthscale = 0.4
    found = threshold(model, x[:1], 0.7, 0, (0.0, 1.0), probability=0.9)
    c = torch.special.ndtri(tensor(0.7))
    for value, share in ((found.median, 0.5), (found.lower, 0.05), (found.upper, 0.95)):
        reached = model.latent_posterior(value.unsqueeze(-1)).probability_above(c).item()
        assert abs(reached - share) < 4.5 * (2 * share * (1 - share) / 1500) ** 0.5


def test_batches_dtype_and_repetition():
    model = labels_model()
    X = torch.rand(2, 3, 2, dtype=DOUBLE)
    found = threshold(model, X, 0.6, 1, (0.0, 1.0), num_draws=256, num_points=33)
    again = threshold(model, X.flatten(0, 1), 0.6, -1, tensor([0.0, 1.0]), num_draws=256, num_points=33)
    for part, other in zip(found, again, strict=True):
        assert part.shape == (2, 3)
        assert not part.requires_grad
        torch.testing.assert_close(part.flatten(), other)
    single = threshold(model.float(), X.float(), 0.6, 1, (0.0, 1.0), num_draws=256, num_points=33)
    assert single.median.dtype == torch.float32
    finite = found.median.isfinite() & single.median.isfinite()
    assert finite.any()
    assert (found.median - single.median)[finite].abs().max() < 0.1


def test_entries_of_a_long_batch_are_those_alone(monkeypatch):
    monkeypatch.setattr("botorch_skewgp.thresholds.MAX_ENTRIES", 2 * 64 * 17)
    model, X = labels_model(), torch.rand(5, 2, dtype=DOUBLE)
    found = threshold(model, X, 0.6, 1, (0.0, 1.0), num_draws=64, num_points=17)
    for i in range(5):
        alone = threshold(model, X[i], 0.6, 1, (0.0, 1.0), num_draws=64, num_points=17)
        torch.testing.assert_close(torch.stack(alone), torch.stack(found)[:, i])


def test_units_of_inputs():
    """An input transform changes units alone."""
    plain = labels_model()
    scaled = SkewGP(
        100 * plain.datapoints, plain.observations, draw_settings=SETTINGS,
        input_transform=Normalize(2, bounds=tensor([[0.0, 0.0], [100.0, 100.0]])),
    )  # fmt: skip
    scaled.load_state_dict({**scaled.state_dict(), **plain.state_dict()}, strict=False)
    X = tensor([[0.3, 0.0], [0.7, 0.0]])
    a = threshold(plain, X, 0.6, 1, (0.0, 1.0), num_draws=256)
    b = threshold(scaled, 100 * X, 0.6, 1, (0.0, 100.0), num_draws=256)
    torch.testing.assert_close(100 * a.median, b.median, rtol=1e-3, atol=1e-3)


def test_ensemble_takes_draws_of_all_members():
    low, high = labels_model(), labels_model(likelihood=ProbitLikelihood(noise=3.0))
    X = tensor([[0.3, 0.0]])
    single = [threshold(m, X, 0.6, 1, (0.0, 1.0), num_draws=500) for m in (low, high)]
    both = threshold(FullyBayesianSkewGP([low, high]), X, 0.6, 1, (0.0, 1.0), num_draws=1000)
    torch.testing.assert_close(both.above, (single[0].above + single[1].above) / 2)
    ends = torch.cat([part.median for part in single]).sort().values
    assert ends[0] <= both.median <= ends[1]


@pytest.mark.parametrize("minimize", [False, True])
def test_psychometric_function_is_the_probability_of_validity(minimize):
    X = tensor([[0.1], [0.5], [0.8]])
    likelihood = ValidityLikelihood(threshold=0.3, noise=0.2)
    model = type("Model", (SkewGP,), {"minimize": minimize})(
        X, Validity([1, 0, 1]), likelihood=likelihood, draw_settings=SETTINGS
    )
    function = PsychometricFunction.of(model)
    posterior = model.latent_posterior(X)
    p = function(posterior.component_means, posterior.gaussian_variance.unsqueeze(-1)).mean(-1)
    torch.testing.assert_close(p, LogProbabilityOfValidity(model)(X.unsqueeze(-2)).exp())
    assert function.sign == (-1 if minimize else 1)
    at = function.latent_level(0.8)
    torch.testing.assert_close(function(at), tensor(0.8), check_dtype=False)
    assert (function(at + function.sign * 0.1) > 0.8).all()
    low, high = function.limits
    assert low == 0
    assert high == 1


def test_a_judge_slips_at_his_own_rate():
    X = torch.linspace(0, 1, 8, dtype=torch.double).unsqueeze(-1)
    labels = Binary(torch.tensor([0, 0, 1, 0, 1, 0, 1, 1]), judge=torch.arange(8) % 2)
    model = SkewGP(X, labels, likelihood=ProbitLikelihood(slip=torch.tensor([0.02, 0.4])), approximation="ep")
    far = torch.tensor([50.0], dtype=torch.double)
    for judge, highest in ((0, 0.99), (1, 0.8), (None, 0.895)):
        assert float(PsychometricFunction.of(model.for_judge(judge))(far)) == pytest.approx(highest)


def test_bad_input():
    model, X = labels_model(), torch.rand(3, 2, dtype=DOUBLE)
    with pytest.raises(BotorchTensorDimensionError, match="X must be batch_shape x 2"):
        threshold(model, X[:, :1], 0.5, 0, (0.0, 1.0))
    with pytest.raises(BotorchTensorDimensionError, match="dim 2"):
        threshold(model, X, 0.5, 2, (0.0, 1.0))
    for bounds in ((0.0, 0.0), (0.0, torch.inf), (0.0, 1.0, 2.0)):
        with pytest.raises(InputDataError, match="bounds must be two different finite numbers"):
            threshold(model, X, 0.5, 1, bounds)
    with pytest.raises(InputDataError, match="level must be between 0 and 1"):
        threshold(model, X, 1.0, 1, (0.0, 1.0))
    with pytest.raises(InputDataError, match="probability must be strictly between"):
        threshold(model, X, 0.5, 1, (0.0, 1.0), probability=1.0)
    with pytest.raises(InputDataError, match="X must be a floating point tensor"):
        threshold(model, [[0.1, 0.2]], 0.5, 1, (0.0, 1.0))
    with pytest.raises(InputDataError, match="NaN or infinite values in other columns than 1"):
        threshold(model, X.fill_diagonal_(torch.nan), 0.5, 1, (0.0, 1.0))
    X = torch.rand(3, 2, dtype=DOUBLE)
    with pytest.raises(InputDataError, match="level must be a finite number; got 'half'"):
        threshold(model, X, "half", 1, (0.0, 1.0))
    with pytest.raises(InputDataError, match="num_points must be an integer of at least 2"):
        threshold(model, X, 0.5, 1, (0.0, 1.0), num_points=1)
    duels = SkewGP(X, Preference([[0, 1]]), draw_settings=SETTINGS)
    with pytest.raises(UnsupportedError, match="yes/no answers"):
        threshold(duels, X, 0.5, 1, (0.0, 1.0))
    with pytest.raises(UnsupportedError, match="needs a SkewGP"):
        threshold(SingleTaskGP(X, X[:, :1]), X, 0.5, 1, (0.0, 1.0))
    perturbed = labels_model(input_transform=InputPerturbation(torch.zeros(2, 2, dtype=DOUBLE)))
    with pytest.raises(UnsupportedError, match="add points"):
        threshold(perturbed, X, 0.5, 1, (0.0, 1.0))


def test_no_points_have_no_thresholds():
    found = threshold(labels_model(), torch.empty(0, 2, dtype=DOUBLE), 0.5, 1, (0.0, 1.0))
    assert all(entry.shape == (0,) for entry in found)
