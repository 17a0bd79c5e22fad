"""Rivals of races: the hallucination believer against the Gaussian that its draw leaves, by dense linear algebra."""

import torch
from acquisition_checks import DOUBLE, PAIRS, POINTS, make_model, points

from benchmarks._challengers import Challenger, hallucination_believer


def test_hallucinated_improvement_is_that_of_the_gaussian_given_one_draw(generator):
    model, X, reference = make_model(), points(generator, 3), POINTS[:1]
    torch.manual_seed(0)
    value = hallucination_believer(model, reference)(X).exp()
    W = torch.zeros(6, 7, dtype=DOUBLE).scatter(1, PAIRS, torch.tensor([[1.0, -1.0]] * 6, dtype=DOUBLE))
    K = model.covar_module(torch.cat([POINTS, X.squeeze(-2), reference])).to_dense().detach()
    rows = W @ K[:7, :7] @ W.mT + 2 * torch.eye(6, dtype=DOUBLE)
    contrast = torch.cat([torch.eye(3), -torch.ones(3, 1)], dim=-1).double()
    gain = torch.linalg.solve(rows, W @ K[:7, 7:] @ contrast.mT)  # rows x candidates
    means = model.draws.rows.double() @ gain
    variance = (contrast @ K[7:, 7:] @ contrast.mT - gain.mT @ rows @ gain).diagonal()
    normal = torch.distributions.Normal(torch.zeros(3).double(), torch.ones(3).double())
    z = means / variance.sqrt()
    expected = variance.sqrt() * (z * normal.cdf(z) + normal.log_prob(z).exp())  # of every draw
    assert (expected - value).abs().amax(-1).amin() < 1e-8  # of one draw, at all candidates
    other = hallucination_believer(model, reference)(X).exp()
    assert not torch.allclose(other, value)  # another object believes another draw


def test_a_challenger_is_its_criterion(generator):
    model, X = make_model(), points(generator, 3)
    mean = Challenger(model, POINTS[0], lambda components: (components.mean * components.log_probability.exp()).sum(-1))
    both = model.posterior(torch.cat([X.squeeze(-2), POINTS[:1]])).mean.squeeze(-1)
    torch.testing.assert_close(mean(X), both[:3] - both[3])
