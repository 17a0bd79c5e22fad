"""Derivatives of the log evidence where sites are kept from negative precisions, against differences of its values."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.exceptions import CompetingExplanationsWarning, ConvergenceWarning
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.observations import Choice
from botorch_skewgp.truncated.priors import LowRankPrior
from botorch_skewgp.truncated.priors.bordered import BorderedPrior
from botorch_skewgp.truncated.priors.weighted import WeightedPrior
from botorch_skewgp.truncated.propagation import expectation_propagation as module
from botorch_skewgp.truncated.propagation.expectation_propagation import ExpectationPropagation, expectation_propagation
from botorch_skewgp.truncated.step_factor import Heights
from botorch_skewgp.truncated.truncated_normal import TruncatedNormal

NUM_ROWS, SMALL = 12, 1e-5
# kind of prior, whether the first two rows are one answer, whether rows stand for several; the seeds have competition
CASES = [("low rank", False, False, 2), ("low rank", True, False, 3), ("weighted", False, False, 1),
         ("bordered", False, False, 2), ("low rank", False, True, 5)]  # fmt: skip


def problem(kind: str, joined: bool, counted: bool, seed: int, parameters: Tensor) -> TruncatedNormal:
    """Rows of a wide prior, some of them two-sided, whose tensors all depend on parameters."""
    g = torch.Generator().manual_seed(seed)
    matrices = [math.sqrt(50) * torch.randn(NUM_ROWS, 3, dtype=torch.double, generator=g) for _ in range(2)]
    root = matrices[0] + parameters[0] * matrices[1]
    prior: LowRankPrior = LowRankPrior(root)
    if kind == "weighted":
        index = torch.stack([torch.randperm(6, generator=g)[:2] for _ in range(NUM_ROWS)])
        values = torch.cat([root[:6], root[6:12]], dim=-1).triu()
        prior = WeightedPrior(index, torch.tensor([1.0, -1.0]).double().expand(NUM_ROWS, 2), values)
    if kind == "bordered":
        block = torch.arange(NUM_ROWS) // 6
        prior = BorderedPrior(root, root[:, :1] * (1 + parameters[0]), block)
    mean = torch.randn(NUM_ROWS, dtype=torch.double, generator=g)
    upper = torch.full_like(mean, torch.inf)
    upper[::4] = 2 + parameters[4]
    answer = torch.tensor([0, *range(NUM_ROWS - 1)]).to(mean) if joined else None
    rate = (0.1 + parameters[2]).expand(NUM_ROWS)
    return TruncatedNormal(
        (0.3 + parameters[1]) * mean,
        prior,
        parameters[4].expand(NUM_ROWS),
        upper,
        (1 + parameters[3]).expand(NUM_ROWS),
        count=1 + (torch.arange(NUM_ROWS) % 3 == 0).to(mean) if counted else None,
        heights=Heights(rate / 2, 1 - rate, answer),
    )


def propagated(kind: str, joined: bool, counted: bool, seed: int, parameters: Tensor) -> ExpectationPropagation:
    return expectation_propagation(problem(kind, joined, counted, seed, parameters), tolerance=1e-11, non_negative=True)


@pytest.mark.parametrize(("kind", "joined", "counted", "seed"), CASES)
def test_derivatives_are_those_of_the_value(
    kind: str, joined: bool, counted: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    zero = torch.zeros(5, dtype=torch.double, requires_grad=True)
    ep = propagated(kind, joined, counted, seed, zero)
    assert float(ep.sites.precision.min()) < 1e-9  # that site would be negative
    (slope,) = torch.autograd.grad(ep.log_normalizer, zero)
    direction = torch.tensor([1.0, -0.7, 0.4, 0.9, -1.3], dtype=torch.double)
    with torch.no_grad():
        ahead, behind = (
            propagated(kind, joined, counted, seed, sign * direction).log_normalizer for sign in (SMALL, -SMALL)
        )
    assert torch.allclose(slope @ direction, (ahead - behind) / (2 * SMALL), rtol=1e-5, atol=1e-5)

    # held sites, as at a stationary point, tell another one
    monkeypatch.setattr(module, "slopes_of_sites", lambda *_: (torch.zeros(()), []))
    (held,) = torch.autograd.grad(propagated(kind, joined, counted, seed, zero).log_normalizer, zero)
    assert float((held - slope).abs().max()) > 0.01


@pytest.mark.slow
def test_steps_shorten_where_sites_go_round_in_circles() -> None:
    """Three choices, two of which contradict each other: with steps of one half sites go on changing by a quarter."""
    g = torch.Generator().manual_seed(0)
    X = torch.rand(8, 2, dtype=torch.double, generator=g)
    choices = Choice(torch.tensor([[0, 1, 2], [3, 4, 5], [2, 0, 1]]))
    model = SkewGP(X, choices, likelihood=PreferenceLikelihood(slip=0.02), approximation="ep")
    model.covar_module.outputscale = 1000.0
    with pytest.warns(CompetingExplanationsWarning, match="no fixed point") as caught:
        slips = model.slips()
    assert not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    assert float(slips[2]) > float(slips[0]) > float(slips[1])
