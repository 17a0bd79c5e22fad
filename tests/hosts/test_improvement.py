"""What both hosts maximise: improvement, times the probabilities that a trial works and meets its constraints."""

import pytest
import torch

from botorch_skewgp import SkewGP
from botorch_skewgp.hosts.improvement import LogProbabilityOfLatentImprovement, WeightedImprovement, log_improvement
from botorch_skewgp.observations import Numeric, Preference, Validity

X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
NUMBERS = [Numeric((5 * X).sin().squeeze(-1), torch.full((6,), 0.01).double())]
DUELS = [Preference([[1, 0], [2, 5], [1, 4]])]
AT = torch.tensor([[[0.15]], [[0.33]], [[0.71]]], dtype=torch.float64)


def works():
    return SkewGP(X, Validity(torch.tensor([True, True, False, True, True, False])))


@pytest.mark.parametrize("observations", [NUMBERS, DUELS], ids=["numbers", "duels"])
@pytest.mark.parametrize("maximize", [True, False])
def test_improvement_is_that_of_samples(observations, maximize):
    """One draw of the rows has many of the best value, many draws have one each."""
    model = SkewGP(X, observations)
    pending = X[:1] + 0.1
    with torch.no_grad():
        joint = model.posterior(torch.cat([AT.squeeze(1), X, pending])).rsample(torch.Size([20_000])).squeeze(-1)
        joint = joint if maximize else -joint
        gain = (joint[:, :3] - joint[:, 3:].amax(-1, keepdim=True)).clamp(min=0).mean(0)
        found = log_improvement(model, X, pending, seed=0, maximize=maximize)(AT).exp()
    torch.testing.assert_close(found, gain, rtol=0.15, atol=3e-3)


def test_the_probability_that_the_latent_function_is_beyond_a_bound():
    model = works()
    with torch.no_grad():
        samples = model.latent_posterior(AT.squeeze(1)).rsample(torch.Size([20_000])).squeeze(-1)
        for limit, is_above in ((0.4, True), (-0.2, False)):
            found = LogProbabilityOfLatentImprovement(model, limit, maximize=is_above)(AT).exp()
            expected = ((samples > limit) if is_above else (samples < limit)).double().mean(0)
            torch.testing.assert_close(found, expected, rtol=0, atol=0.015)


def test_pending_points_join_the_baseline_and_weights_are_as_before():
    model = SkewGP(X, NUMBERS)
    weight = LogProbabilityOfLatentImprovement(works(), 0.0)
    weighted = WeightedImprovement(log_improvement(model, X, None, seed=0), weight, X_baseline=X)
    with torch.no_grad():
        before = weighted(AT)
        torch.testing.assert_close(before, weighted.terms[0](AT) + weight(AT))
        weighted.set_X_pending(AT[1])
        after = weighted(AT)
        torch.testing.assert_close(after, log_improvement(model, X, AT[1], seed=0)(AT) + weight(AT))
    assert weighted.X_pending is not None
    assert after[1] < before[1] - 1
