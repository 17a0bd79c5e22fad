"""A judge who may call a tie: everywhere a duel has three outcomes, and a win is a difference beyond the width."""

import gpytorch
import pytest
import torch
from botorch.sampling.normal import SobolQMCNormalSampler

from botorch_skewgp import SkewGP
from botorch_skewgp.checking import leave_one_out
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.observations import Preference, Tie
from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.truncated.draws import DrawSettings

NOISE, WIDTH, SCALE, LENGTH = 0.3, 0.6, 1.4, 0.8
X = torch.tensor([[0.0], [0.7], [1.3]], dtype=torch.float64)
NEW = torch.tensor([[0.4], [1.6]], dtype=torch.float64)
SEEN = [Preference([[0, 1], [2, 1]]), Tie([[0, 2]])]


def model_of(observations, X=X, num_draws=8192, ties_allowed=True):
    covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()).double()
    covar_module.initialize(outputscale=torch.tensor(SCALE, dtype=torch.float64))
    covar_module.base_kernel.initialize(lengthscale=torch.tensor(LENGTH, dtype=torch.float64))
    likelihood = PreferenceLikelihood(noise=NOISE, tie_width=WIDTH, ties_allowed=ties_allowed)
    settings = DrawSettings(num_draws=num_draws, seed=3)
    mean_module = gpytorch.means.ZeroMean()
    return SkewGP(X, observations, likelihood, covar_module, mean_module, draw_settings=settings).eval()


def simulated(num=400_000):
    """Draws of the function at `X` and `NEW` that what was seen allows, as it comes about."""
    generator = torch.Generator().manual_seed(0)
    Z = torch.cat([X, NEW])
    K = SCALE * torch.exp(-0.5 * (Z - Z.mT).square() / LENGTH**2)
    root = torch.linalg.cholesky(K + 1e-10 * torch.eye(len(Z), dtype=Z.dtype))
    f = torch.randn(num, len(Z), dtype=Z.dtype, generator=generator) @ root.mT

    def difference(a, b):
        noise = torch.randn(num, 2, dtype=Z.dtype, generator=generator)
        return f[:, a] - f[:, b] + NOISE**0.5 * (noise[:, 0] - noise[:, 1])

    keep = (difference(0, 1) > WIDTH) & (difference(2, 1) > WIDTH) & (difference(0, 2).abs() <= WIDTH)
    asked = difference(3, 4)
    return f[keep], asked[keep], keep.double().mean()


def outcomes(difference):
    """Shares of wins, losses and ties."""
    won, lost = (difference > WIDTH).double(), (difference < -WIDTH).double()
    return torch.stack([won, lost, 1 - won - lost], dim=-1)


def test_posterior_and_evidence():
    f, _, share = simulated()
    model = model_of(SEEN)
    posterior = model.posterior(torch.cat([X, NEW]))
    error = f.std(0) * (1 / len(f) + 1 / float(model.draws.effective_size.min())) ** 0.5
    assert ((posterior.mean.squeeze(-1) - f.mean(0)).abs() < 4.5 * error).all()
    assert ((posterior.variance.squeeze(-1).sqrt() / f.std(0) - 1).abs() < 0.05).all()
    exact = model.log_marginal_likelihood("exact")
    spread = (exact.standard_error**2 + (1 - share) / share / 400_000) ** 0.5
    assert abs(exact.value - share.log()) < 4.5 * spread
    # without ties among the answers a win asks for less
    assert model_of(SEEN[:1], ties_allowed=False).log_marginal_likelihood("ep").value > exact.value


def test_predictive_has_three_outcomes():
    _, asked, _ = simulated()
    found = model_of(SEEN).predictive(NEW).probs.detach()
    truth = outcomes(asked)
    assert found.shape == (3,)
    assert float(found.sum()) == pytest.approx(1.0)
    assert ((found - truth.mean(0)).abs() < 4.5 * truth.std(0) / len(asked) ** 0.5 + 0.01).all()


def test_duels_in_a_batch_keep_the_margin():
    Y = torch.tensor([[[0, 1]], [[1, 0]]])
    batch = model_of(SEEN).condition_on_observations(NEW.expand(2, 2, 1), Y)
    means = batch.posterior(NEW.expand(2, 2, 1)).mean
    for k in range(2):
        fresh = model_of([*SEEN, Preference(Y[k]).shift(len(X))], torch.cat([X, NEW])).posterior(NEW)
        assert ((means[k] - fresh.mean).abs() < 6 * fresh.variance.sqrt() / 1000**0.5).all()


def test_fantasies_are_wins_losses_and_ties():
    model = model_of(SEEN)
    fantasies = model.fantasize(NEW, SobolQMCNormalSampler(torch.Size([64]), seed=1))
    means = fantasies.posterior(NEW).mean.squeeze(-1)
    difference = means[:, 0] - means[:, 1]
    fresh = []
    for answer in (Preference([[0, 1]]), Preference([[1, 0]]), Tie([[0, 1]])):
        mean = model_of([*SEEN, answer.shift(len(X))], torch.cat([X, NEW])).posterior(NEW).mean
        fresh.append(mean[0] - mean[1])
    nearest = (difference.unsqueeze(-1) - torch.cat(fresh)).abs().min(-1)
    assert (nearest.values < 0.1).all()
    shares = torch.nn.functional.one_hot(nearest.indices, 3).double().mean(0)
    truth = model.predictive(NEW).probs
    assert ((shares - truth).abs() < 4.5 * (truth * (1 - truth) / 64) ** 0.5).all()


def test_leave_one_out():
    found = leave_one_out(model_of(SEEN)).log_predictive
    left_out = [
        ([Preference([[2, 1]]), SEEN[1]], Preference([[0, 1]])),
        ([Preference([[0, 1]]), SEEN[1]], Preference([[2, 1]])),
        ([SEEN[0]], SEEN[1]),
    ]
    for value, (rest, answer) in zip(found, left_out, strict=True):
        truth = model_of(rest).log_predictive_probability(X, answer, corrected_log_normalizer)
        assert float(value) == pytest.approx(float(truth), abs=0.05)
