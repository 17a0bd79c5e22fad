"""The kind of observation that the documentation writes as an example, against simulation of how it comes about."""

import math
from dataclasses import dataclass

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.sampling.normal import SobolQMCNormalSampler
from code_blocks import ROOT, markdown_blocks, run
from gpytorch.kernels import RBFKernel
from gpytorch.means import ZeroMean

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import register_default_likelihood
from botorch_skewgp.observations import Observation
from botorch_skewgp.rows import Reading
from botorch_skewgp.truncated.draws import DrawSettings

X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
INDEX, FOUND = torch.tensor([[0, 1, 2], [3, 4, 5], [1, 2, 3]]), torch.tensor([True, False, True])
LIMIT, NOISE = 0.2, 0.3
NEW = torch.tensor([0, 2, 5])


@pytest.fixture(scope="module")
def page() -> dict:
    names: dict = {}
    run(markdown_blocks(ROOT / "docs" / "new_kind.md")[0], "new_kind.md", names)
    return names


@pytest.fixture(scope="module")
def model(page) -> SkewGP:
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.4
    pool, likelihood = page["Pool"](INDEX, FOUND), page["PoolLikelihood"](LIMIT, NOISE)
    modules = {"likelihood": likelihood, "covar_module": kernel, "mean_module": ZeroMean()}
    return SkewGP(X, pool, **modules, draw_settings=DrawSettings(num_draws=4096)).eval()


@pytest.fixture(scope="module")
def kept() -> tuple[torch.Tensor, int]:
    """Draws of the function for which simulated blends come out as they did, of so many."""
    K = torch.exp(-0.5 * ((X - X.mT) / 0.4).square()) + 1e-10 * torch.eye(6, dtype=torch.float64)
    N, generator = 200_000, torch.Generator().manual_seed(0)
    f = torch.randn(N, 6, generator=generator, dtype=torch.float64) @ torch.linalg.cholesky(K).mT
    noise = math.sqrt(NOISE) * torch.randn(N, 3, 3, generator=generator, dtype=torch.float64)
    found = (f[:, INDEX] + noise).mean(-1) > LIMIT
    return f[(found == FOUND).all(-1)], N


def test_posterior_and_evidence(model, kept):
    f, N = kept
    posterior = model.posterior(X)
    mean, sd = posterior.mean.detach().squeeze(-1), posterior.variance.detach().squeeze(-1).sqrt()
    error = math.sqrt(1 / len(f) + 1 / float(model.draws.effective_size.min()))
    assert ((f.mean(0) - mean) / sd).abs().max() < 4.5 * error
    assert ((f.std(0) - sd) / sd).abs().max() < 4.5 * error
    exact = model.log_marginal_likelihood()
    counted = math.sqrt((1 - len(f) / N) / len(f))
    assert abs(math.log(len(f) / N) - exact.value) < 4.5 * math.hypot(counted, exact.standard_error)


def test_prediction(model, kept):
    """The probability that a blend of three other places is above the limit."""
    f, _ = kept
    chance = torch.special.ndtr((f[:, NEW].mean(-1) - LIMIT) / math.sqrt(NOISE / 3))
    error = math.sqrt(1 / len(f) + 1 / float(model.draws.effective_size.min())) * chance.std()
    assert abs(chance.mean() - model.predictive(X[NEW]).probs) < 4.5 * error


def test_fantasies(model, kept):
    """Over outcomes of a new blend, each as often as it is probable, the posterior's mean is kept."""
    fantasies = model.fantasize(X[NEW], SobolQMCNormalSampler(torch.Size([64]), seed=0))
    means = fantasies.posterior(X).mean.detach().squeeze(-1)
    values = means.round(decimals=6).unique(dim=0)
    assert len(values) == 2  # found or not
    f, _ = kept
    chance = torch.special.ndtr((f[:, NEW].mean(-1) - LIMIT) / math.sqrt(NOISE / 3))
    expected = torch.stack([(w.unsqueeze(-1) * f).mean(0) / w.mean() for w in (chance, 1 - chance)])
    order = expected[:, 0].argsort()
    torch.testing.assert_close(values[values[:, 0].argsort()], expected[order], atol=0.06, rtol=0)


def test_default_likelihood_beside_numbers(page):
    run(markdown_blocks(ROOT / "docs" / "new_kind.md")[1], "new_kind.md", page)
    assert page["model"].posterior(X).mean.isfinite().all()


def test_groups_with_parameters_of_their_own_are_siblings(page):
    names = [("PoolOfA", 0.0), ("PoolOfB", 5.0)]
    kinds, likelihoods = [], []
    for name, limit in names:
        kinds.append(dataclass(frozen=True, eq=False)(type(name, (page["Pool"],), {})))
        likelihoods.append(type(f"{name}Likelihood", (page["PoolLikelihood"],), {"observation_types": (kinds[-1],)}))
        register_default_likelihood(kinds[-1], lambda entry, context, make=likelihoods[-1], limit=limit: make(limit))
    for order in ([0, 1], [1, 0]):
        model = SkewGP(X, [kinds[i](INDEX, FOUND) for i in order])
        assert [model.likelihood.for_kind(kind).limit for kind in kinds] == [0.0, 5.0]


def test_what_is_wrong_with_a_kind_is_said_when_it_is_registered():
    @dataclass(frozen=True, eq=False)
    class Renamed(Observation):
        rows: torch.Tensor

    class Undecorated(Observation):
        index: torch.Tensor

    for kind in (Renamed, Undecorated):
        with pytest.raises(InputDataError, match=f"{kind.__name__} has no field 'index', the rows of train_X"):
            register_default_likelihood(kind, lambda entry, context: None)
    with pytest.raises(InputDataError, match="kind must be a subclass of Observation"):
        register_default_likelihood(int, lambda entry, context: None)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((1, 3), (1, 1), ()), "noise must be one variance, of shape \\(1,\\)"),
        (((1, 3), (1, 1), (3,)), "noise must be one variance"),
        (((3,), (1, 1), (1,)), "weight must be R x k and cutpoints R x C"),
        (((1, 3), (2, 1), (1,)), "weight must be R x k and cutpoints R x C"),
    ],
)
def test_shapes_of_a_reading_are_checked(shapes, message):
    with pytest.raises(InputDataError, match=message):
        Reading(*(torch.ones(shape) for shape in shapes))
