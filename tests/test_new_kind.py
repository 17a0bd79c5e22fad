"""The kind of observation that the documentation writes as an example, against simulation of how it comes about."""

import math

import pytest
import torch
from botorch.sampling.normal import SobolQMCNormalSampler
from code_blocks import ROOT, markdown_blocks, run
from gpytorch.kernels import RBFKernel
from gpytorch.means import ZeroMean

from botorch_skewgp import SkewGP
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
    return SkewGP(
        X,
        page["Pool"](INDEX, FOUND),
        likelihood=page["PoolLikelihood"](LIMIT, NOISE),
        covar_module=kernel,
        mean_module=ZeroMean(),
        draw_settings=DrawSettings(num_draws=4096),
    ).eval()


@pytest.fixture
def kept(generator) -> tuple[torch.Tensor, int]:
    """Draws of the function for which simulated blends come out as they did, of so many."""
    K = torch.exp(-0.5 * ((X - X.mT) / 0.4).square()) + 1e-10 * torch.eye(6, dtype=torch.float64)
    N = 400_000
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
