"""Thresholds against known functions, quantiles of the posterior, and functions drawn and solved one by one."""

from functools import partial

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import ChainedInputTransform, InputPerturbation, Log10, Normalize
from validity_cases import FallingValidityLikelihood

from botorch_skewgp import SkewGP, likelihoods
from botorch_skewgp.acquisition import LogProbabilityOfValidity
from botorch_skewgp.kernels.items import ItemEffectKernel
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import Binary, Numeric, Preference, Slope, Validity
from botorch_skewgp.thresholds import PsychometricFunction, threshold
from botorch_skewgp.truncated.draws import DrawSettings

pytestmark = pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.FewAnswersWarning")  # few labels are quick

DOUBLE = torch.float64
SETTINGS = DrawSettings(num_draws=512)
tensor = partial(torch.tensor, dtype=DOUBLE)


def latent(X):
    """Rises in the second input; reaches `c` at `.5 - .3 x0 + c / 4`."""
    return 4 * (X[..., 1] - 0.5 + 0.3 * X[..., 0])


def skew_gp(X, observations, scale, lengthscale, **options) -> SkewGP:
    model = SkewGP(X, observations, **{"draw_settings": SETTINGS, **options})
    model.covar_module.outputscale, model.covar_module.base_kernel.lengthscale = scale, lengthscale
    return model


def labels_model(n=25, **options) -> SkewGP:
    generator = torch.Generator().manual_seed(1)
    X = torch.rand(n, 2, generator=generator, dtype=DOUBLE)
    y = torch.rand(n, generator=generator, dtype=DOUBLE) < torch.special.ndtr(latent(X))
    return skew_gp(X, Binary(y), 4.0, 0.8, **options)


def known_model(observation, of_answers, sign=1.0) -> SkewGP:
    """Numbers without noise tell the latent function, so that its threshold is known."""
    grid = torch.cartesian_prod(*[torch.linspace(0, 1, 8, dtype=DOUBLE)] * 2)
    likelihood = likelihoods.MixedLikelihood(likelihoods.NumericLikelihood(noise=1e-4), of_answers)
    return skew_gp(grid, [Numeric(sign * latent(grid)), observation], 9.0, 1.0, likelihood=likelihood)


@pytest.fixture(scope="module")
def labels():
    return labels_model()


@pytest.fixture(scope="module", params=[1.0, -1.0])
def known(request):
    """The sign of a known function, and its model."""
    at = [63 if request.param > 0 else 0]
    return request.param, known_model(Binary([1], index=at), likelihoods.ProbitLikelihood(noise=0.5), request.param)


@pytest.mark.parametrize("level", [0.5, 0.75])
def test_known_function(known, level):
    sign, model = known
    X = tensor([[0.0, 9.0], [0.4, -1.0], [1.0, 0.0]])
    found = threshold(model, X, level, dim=1, bounds=(0.0, 1.0) if sign > 0 else (1.0, 0.0))
    c = sign * 0.5**0.5 * torch.special.ndtri(tensor(level))
    expected = 0.5 - 0.3 * X[:, 0] + c / 4
    for part in found[:3]:
        torch.testing.assert_close(part, expected, rtol=0, atol=4e-3)  # the noise of numbers is 0.01, the slope 4
    assert ((found.lower <= found.median) & (found.median <= found.upper)).all()
    assert ((found.below == 0) & (found.above == 0)).all()


def test_low_values_are_valid():
    """Validity is lost where the function rises above its limit."""
    likelihood = FallingValidityLikelihood(threshold=0.2, noise=0.1)
    model = known_model(Validity([1], index=[0]), likelihood)
    found = threshold(model, tensor([[0.4, 0.0]]), 0.5, dim=1, bounds=(1.0, 0.0))
    torch.testing.assert_close(found.median, tensor([0.5 - 0.3 * 0.4 + 0.2 / 4]), rtol=0, atol=4e-3)


@pytest.mark.parametrize("bounds", [(0.6, 1.0), (1.0, 0.6), (0.0, 0.2), (0.2, 0.0)])
def test_outside_of_the_bounds(known, bounds):
    """The level is reached at .35 by the function that rises, and by its negative one."""
    sign, model = known
    found = threshold(model, tensor([[0.5, 0.0]]), 0.5, 1, bounds)
    is_yes = (max(bounds) > 0.5) == (sign > 0)  # throughout
    is_below = is_yes == (bounds[0] < bounds[1])
    assert (found.below.item(), found.above.item()) == (float(is_below), float(not is_below))
    assert found.median.item() == found.lower.item() == found.upper.item() == (-torch.inf if is_below else torch.inf)


def test_first_of_several_crossings():
    x = torch.linspace(0, 1, 41, dtype=DOUBLE).unsqueeze(-1)
    wave = torch.sin(12 * x[:, 0]) - 0.2  # first reaches 0 going up at asin(.2) / 12
    likelihood = likelihoods.MixedLikelihood(likelihoods.NumericLikelihood(noise=1e-4), likelihoods.ProbitLikelihood())
    model = skew_gp(x, [Numeric(wave), Binary([1], index=[5])], 1.0, 0.15, likelihood=likelihood)
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


def test_against_functions_one_by_one(labels, generator):
    model, N = labels, 4000
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
    likelihood = likelihoods.MixedLikelihood(likelihoods.ProbitLikelihood(), likelihoods.SlopeLikelihood(noise=1e-3))
    rising = Slope(torch.zeros(40, dtype=torch.long), torch.ones(40), index=torch.arange(30, 70))
    observations, settings = [Binary(y, index=torch.arange(30)), rising], DrawSettings(num_draws=2048)
    points = torch.cat([x, slopes])
    model = skew_gp(points, observations, 9.0, 0.4, likelihood=likelihood, draw_settings=settings)
    found = threshold(model, x[:1], 0.7, 0, (0.0, 1.0), probability=0.9)
    c = torch.special.ndtri(tensor(0.7))
    for value, share in ((found.median, 0.5), (found.lower, 0.05), (found.upper, 0.95)):
        reached = model.latent_posterior(value.unsqueeze(-1)).probability_above(c).item()
        assert abs(reached - share) < 4.5 * (2 * share * (1 - share) / 1500) ** 0.5


def test_batches_dtype_and_repetition(labels, monkeypatch):
    X, few = torch.rand(2, 3, 2, dtype=DOUBLE), {"num_draws": 256, "num_points": 33}
    found = threshold(labels, X, 0.6, 1, (0.0, 1.0), **few)
    single = threshold(labels_model().float(), X.float(), 0.6, 1, (0.0, 1.0), **few)
    assert single.median.dtype == torch.float32
    finite = found.median.isfinite() & single.median.isfinite()
    assert finite.any()
    assert (found.median - single.median)[finite].abs().max() < 0.1
    monkeypatch.setattr("botorch_skewgp.thresholds.MAX_ENTRIES", 2 * 256 * 33)
    for part, other in zip(found, threshold(labels, X.flatten(0, 1), 0.6, -1, tensor([0.0, 1.0]), **few), strict=True):
        assert part.shape == (2, 3)
        assert not part.requires_grad
        torch.testing.assert_close(part.flatten(), other)
    alone = threshold(labels, X[0, 1], 0.6, 1, (0.0, 1.0), **few)
    torch.testing.assert_close(torch.stack(alone), torch.stack(found)[:, 0, 1])
    assert all(entry.shape == (0,) for entry in threshold(labels, X[0, :0], 0.5, 1, (0.0, 1.0)))


def test_units_of_inputs(labels):
    """An input transform changes units alone."""
    plain = labels
    scaled = SkewGP(
        100 * plain.datapoints, plain.observations, draw_settings=SETTINGS,
        input_transform=Normalize(2, bounds=tensor([[0.0, 0.0], [100.0, 100.0]])),
    )  # fmt: skip
    scaled.load_state_dict({**scaled.state_dict(), **plain.state_dict()}, strict=False)
    X = tensor([[0.3, 0.0], [0.7, 0.0]])
    a = threshold(plain, X, 0.6, 1, (0.0, 1.0), num_draws=256)
    b = threshold(scaled, 100 * X, 0.6, 1, (0.0, 100.0), num_draws=256)
    torch.testing.assert_close(100 * a.median, b.median, rtol=1e-3, atol=1e-3)


def test_ensemble_takes_draws_of_all_members(labels):
    low, high = labels, labels_model(likelihood=likelihoods.ProbitLikelihood(noise=3.0))
    X = tensor([[0.3, 0.0]])
    single = [threshold(m, X, 0.6, 1, (0.0, 1.0), num_draws=500) for m in (low, high)]
    both = threshold(FullyBayesianSkewGP([low, high]), X, 0.6, 1, (0.0, 1.0), num_draws=1000)
    torch.testing.assert_close(both.above, (single[0].above + single[1].above) / 2)
    ends = torch.cat([part.median for part in single]).sort().values
    assert ends[0] <= both.median <= ends[1]


@pytest.mark.parametrize("of_validity", [likelihoods.ValidityLikelihood, FallingValidityLikelihood])
def test_psychometric_function_is_the_probability_of_validity(of_validity):
    X = tensor([[0.1], [0.5], [0.8]])
    likelihood = of_validity(threshold=0.3, noise=0.2)
    model = SkewGP(X, Validity([1, 0, 1]), likelihood=likelihood, draw_settings=SETTINGS)
    function = PsychometricFunction.of(model)
    posterior = model.latent_posterior(X)
    p = function(posterior.component_means, posterior.gaussian_variance.unsqueeze(-1)).mean(-1)
    torch.testing.assert_close(p, LogProbabilityOfValidity(model)(X.unsqueeze(-2)).exp())
    assert function.sign == (1 if of_validity is likelihoods.ValidityLikelihood else -1)
    at = function.latent_level(0.8)
    torch.testing.assert_close(function(at), tensor(0.8), check_dtype=False)
    assert (function(at + function.sign * 0.1) > 0.8).all()
    assert tuple(map(float, function.limits)) == (0.0, 1.0)


def test_a_judge_slips_at_his_own_rate():
    X = torch.linspace(0, 1, 8, dtype=torch.double).unsqueeze(-1)
    labels = Binary(torch.tensor([0, 0, 1, 0, 1, 0, 1, 1]), judge=torch.arange(8) % 2)
    likelihood = likelihoods.ProbitLikelihood(slip=torch.tensor([0.02, 0.4]))
    model = SkewGP(X, labels, likelihood=likelihood, approximation="ep")
    far = torch.tensor([50.0], dtype=torch.double)
    for judge, highest in ((0, 0.99), (1, 0.8), (None, 0.895)):
        assert float(PsychometricFunction.of(model.for_judge(judge))(far)) == pytest.approx(highest)


X = torch.rand(3, 2, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("upward", [True, False])
def test_a_threshold_of_an_input_on_a_log_scale_is_that_of_its_logarithm(upward):
    plain = labels_model(approximation="ep")
    doses = plain.datapoints.clone()
    doses[:, 1] = 10 ** (4 * doses[:, 1] - 4)
    transform = ChainedInputTransform(log=Log10([1]), scaled=Normalize(2, bounds=tensor([[0.0, -4.0], [1.0, 0.0]])))
    options = {"approximation": "ep", "input_transform": transform, "draw_settings": SETTINGS}
    on_log_scale = skew_gp(doses, plain.observations, 4.0, 0.8, **options)
    bounds = (0.0, 1.0) if upward else (1.0, 0.0)
    options = {"num_draws": 256, "num_points": 65}
    expected = threshold(plain, X, 0.6, 1, bounds, **options)
    found = threshold(on_log_scale, X, 0.6, 1, [10 ** (4 * end - 4) for end in bounds], **options)
    torch.testing.assert_close(found.median.log10() / 4 + 1, expected.median, rtol=0, atol=1e-3)
    torch.testing.assert_close(found.below, expected.below)
    with pytest.raises(InputDataError, match="must be positive"):
        threshold(on_log_scale, X, 0.6, 1, (0.0, 1.0))


def test_categories_have_no_threshold():
    model = SkewGP(X.round(), Binary([1, 0, 1][: len(X)]), covar_module=ItemEffectKernel(active_dims=[1]))
    with pytest.raises(InputDataError, match="the model reads input 1 as categories"):
        threshold(model, X, 0.5, -1, (0.0, 1.0))


GOOD = {"X": X, "level": 0.5, "dim": 1, "bounds": (0.0, 1.0)}
PERTURBED = InputPerturbation(torch.zeros(2, 2, dtype=DOUBLE))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"X": X[:, :1], "dim": 0}, BotorchTensorDimensionError, "X must be batch_shape x 2"),
        ({"dim": 2}, InputDataError, "dim is about inputs 0 to 1; got 2"),
        *[
            ({"bounds": bounds}, InputDataError, "bounds must be two different finite numbers")
            for bounds in ((0.0, 0.0), (0.0, torch.inf), (0.0, 1.0, 2.0))
        ],
        ({"level": 1.0}, InputDataError, "level must be between 0 and 1"),
        ({"level": "half"}, InputDataError, "level must be a finite number; got 'half'"),
        ({"probability": 1.0}, InputDataError, "probability must be strictly between"),
        ({"X": [[0.1, 0.2]]}, InputDataError, "X must be a floating point tensor"),
        ({"X": X.clone().fill_diagonal_(torch.nan)}, InputDataError, "NaN or infinite values in other columns than 1"),
        ({"num_points": 1}, InputDataError, "num_points must be an integer of at least 2"),
        ({"model": SkewGP(X, Preference([[0, 1]]))}, UnsupportedError, "yes/no answers"),
        ({"model": SingleTaskGP(X, X[:, :1])}, UnsupportedError, "needs a SkewGP"),
        ({"model": labels_model(input_transform=PERTURBED)}, UnsupportedError, "add points"),
    ],
)
def test_bad_input(labels, options, error, message):
    with pytest.raises(error, match=message):
        threshold(**{"model": labels, **GOOD, **options})
