"""BoTorch's noisy expected improvement with samples at the baseline that are made once."""

import pytest

pytest.importorskip("ax")

import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.objective import GenericMCObjective, ScalarizedPosteriorTransform
from botorch.models import ModelList, SingleTaskGP
from botorch.sampling import SobolQMCNormalSampler
from botorch.sampling.list_sampler import ListSampler

from botorch_skewgp.ax.models import AxSkewGP
from botorch_skewgp.ax.noisy_improvement import BaselineLogNoisyExpectedImprovement
from botorch_skewgp.observations import Binary, Numeric
from botorch_skewgp.truncated.draws import DrawSettings

X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
DRAWS = DrawSettings(num_draws=32)


def numbers():
    return AxSkewGP(X, Numeric((5 * X).sin().squeeze(-1), torch.full((6,), 0.01).double()), draw_settings=DRAWS)


def works():
    labels = torch.tensor([1.0, 1, 0, 1, 1, 0])
    return AxSkewGP(X, Binary(labels), probability=True, draw_settings=DRAWS)


def sampler(seed):
    return SobolQMCNormalSampler(torch.Size([16]), seed=seed)


def constrained(cls):
    return cls(
        ModelList(numbers(), works()),
        X,
        sampler=ListSampler(sampler(1), sampler(2)),
        objective=GenericMCObjective(lambda Y, X=None: Y[..., 0]),
        constraints=[lambda Y: 0.02 - Y[..., 1]],  # which some point meets in every sample
        eta=0.1,
        prune_baseline=False,  # which draws at random
    )


def scaled(cls):
    transform = ScalarizedPosteriorTransform(torch.tensor([2.0], dtype=torch.float64), 1.0)
    return cls(numbers(), X, sampler=sampler(1), posterior_transform=transform, prune_baseline=False)


@pytest.mark.parametrize("function", [constrained, scaled])
def test_values_and_gradients_are_those_of_botorch(function):
    known, ours = function(qLogNoisyExpectedImprovement), function(BaselineLogNoisyExpectedImprovement)
    generator = torch.Generator().manual_seed(0)
    for shape in ((3, 1), (2, 3, 1), (2, 2), (3, 1)):
        candidates = torch.rand(*shape, 1, generator=generator, dtype=torch.float64).requires_grad_()
        values = [acq(candidates) for acq in (known, ours)]
        torch.testing.assert_close(values[1], values[0], rtol=1e-6, atol=1e-6)
        gradients = [torch.autograd.grad(value.sum(), candidates)[0] for value in values]
        torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-5, atol=1e-5)


def test_an_objective_that_is_turned_round_is_that_of_the_same_samples():
    """Beside points of the baseline there is nothing to gain, whichever way is better: samples there go together."""
    candidates = torch.tensor([[[0.9]], [[0.99]], [[0.61]], [[0.5]]], dtype=torch.float64)
    transform = ScalarizedPosteriorTransform(torch.tensor([-2.0], dtype=torch.float64), 1.0)
    known, ours = (
        cls(
            numbers(),
            X,
            sampler=SobolQMCNormalSampler(torch.Size([2048]), seed=1),
            posterior_transform=transform,
            prune_baseline=False,
        )(candidates)
        for cls in (qLogNoisyExpectedImprovement, BaselineLogNoisyExpectedImprovement)
    )
    torch.testing.assert_close(ours, known, rtol=0, atol=0.1)


def test_pending_points_join_the_baseline():
    known, ours = constrained(qLogNoisyExpectedImprovement), constrained(BaselineLogNoisyExpectedImprovement)
    candidates = torch.tensor([[[0.33]], [[0.71]]], dtype=torch.float64)
    before = ours(candidates)
    for acq in (known, ours):
        acq.set_X_pending(torch.tensor([[0.3]], dtype=torch.float64))
    torch.testing.assert_close(ours(candidates), known(candidates), rtol=1e-6, atol=1e-6)
    assert ours(candidates)[0] < before[0]


def test_what_does_not_depend_on_candidates_is_computed_once(monkeypatch):
    acq = constrained(BaselineLogNoisyExpectedImprovement)
    candidates = torch.rand(3, 1, 1, dtype=torch.float64)
    value = acq(candidates)
    monkeypatch.setattr(AxSkewGP, "condition_on_samples", None)
    monkeypatch.setattr(qLogNoisyExpectedImprovement, "_get_samples_and_objectives", None)
    assert torch.equal(acq(candidates), value)


def test_other_models_are_taken_as_botorch_takes_them():
    model = SingleTaskGP(X, (5 * X).sin())
    candidates = torch.tensor([[[0.33]], [[0.71]]], dtype=torch.float64)
    values = [
        cls(model, X, sampler=sampler(1), prune_baseline=False)(candidates)
        for cls in (qLogNoisyExpectedImprovement, BaselineLogNoisyExpectedImprovement)
    ]
    assert torch.equal(values[0], values[1])
