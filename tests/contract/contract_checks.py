"""What every acquisition function has to do, as checks that raise AssertionError."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from botorch import settings
from botorch.acquisition import OneShotAcquisitionFunction
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions.errors import UnsupportedError
from botorch.exceptions.warnings import BotorchTensorDimensionWarning, NumericsWarning, OptimizationWarning
from botorch.generation.gen import get_reasons_against_fast_path
from botorch.optim import optimize_acqf
from contract_cases import Case
from contract_registry import Entry
from torch import Tensor

SEED = 7
STEPS = (1e-6, 1e-5, 1e-4)  # where one is spoilt by rounding or a kink, another is not


def build(entry: Entry, case: Case) -> AcquisitionFunction:
    """The acquisition function, the same whenever it is built."""
    with torch.random.fork_rng(), warnings.catch_warnings():
        torch.manual_seed(SEED)
        # BoTorch recommends the log form of some functions, and batches of one point for conditioning
        warnings.simplefilter("ignore", NumericsWarning)
        warnings.simplefilter("ignore", BotorchTensorDimensionWarning)
        return entry.build(case)


def candidates(entry: Entry, acquisition: AcquisitionFunction, q: int, batch: int = 2, seed: int = 21) -> Tensor:
    """Candidate sets, with whatever further points a one-shot function optimises along."""
    if isinstance(acquisition, OneShotAcquisitionFunction):
        q = acquisition.get_augmented_q_batch_size(q)
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(batch, q, entry.dim, dtype=torch.float64, generator=generator)


def evaluate(acquisition: AcquisitionFunction, X: Tensor) -> Tensor:
    with settings.propagate_grads(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchTensorDimensionWarning)
        return acquisition(X)


def check_value(entry: Entry, case: Case, q: int) -> None:
    """The value has the right shape and is finite, at one candidate set and at several."""
    acquisition = build(entry, case)
    for batch in (1, 3):
        X = candidates(entry, acquisition, q, batch)
        with torch.no_grad():
            value = evaluate(acquisition, X)
        assert value.shape == (batch,) + (() if entry.outputs is None else (entry.outputs,))
        assert value.isfinite().all()


def check_gradient(entry: Entry, case: Case, q: int) -> None:
    """Derivatives in a direction against central differences, of the first step that agrees; they are not all zero.

    Of a function that jumps, differences to one side are taken besides: a jump nearby is on the other.
    """
    acquisition = build(entry, case)
    X = candidates(entry, acquisition, q, entry.gradient_batch).requires_grad_()
    (gradient,) = torch.autograd.grad(evaluate(acquisition, X).sum(), X)
    assert gradient.isfinite().all()
    assert entry.may_be_flat or gradient.abs().max() > 0
    direction = torch.randn(X.shape, dtype=X.dtype, generator=torch.Generator().manual_seed(SEED))
    actual, scale = (gradient * direction).sum(), gradient.norm() * direction.norm()
    at = [(X, step) for step in STEPS]
    if entry.jumps:
        at += [(X + sign * STEPS[0] * direction, STEPS[0]) for sign in (1, -1)]
    expected = []
    for centre, step in at:
        with torch.no_grad():
            expected.append(_central_difference(acquisition, centre, direction, step).item())
        if abs(actual - expected[-1]) <= 1e-4 * scale + 1e-8:
            return
    raise AssertionError(f"derivative {actual:.8g}, central differences {expected}")


def _central_difference(acquisition: AcquisitionFunction, X: Tensor, direction: Tensor, step: float) -> Tensor:
    up, down = (evaluate(acquisition, X + s * step * direction).sum() for s in (1, -1))
    return (up - down) / (2 * step)


def check_t_batch(entry: Entry, case: Case, q: int) -> None:
    """Several candidate sets at once give what each gives alone."""
    acquisition = build(entry, case)
    X = candidates(entry, acquisition, q, batch=3)
    with torch.no_grad():
        together = evaluate(acquisition, X)
        alone = torch.cat([evaluate(acquisition, X[i : i + 1]) for i in range(3)])
    torch.testing.assert_close(together, alone, rtol=1e-6, atol=1e-9)


def check_repeat(entry: Entry, case: Case, q: int) -> None:
    """With fixed base samples the value repeats to the last digit."""
    acquisition = build(entry, case)
    X = candidates(entry, acquisition, q)
    with torch.no_grad():
        assert torch.equal(evaluate(acquisition, X), evaluate(acquisition, X))


def check_pending(entry: Entry, case: Case) -> None:
    """Pending points count, or are refused."""
    acquisition = build(entry, case)
    generator = torch.Generator().manual_seed(22)
    num_pending = 2 if case.fantasies_are_duels else 1
    pending = torch.rand(num_pending, entry.dim, dtype=torch.float64, generator=generator)
    if entry.pending is None:
        _check_pending_is_refused(acquisition, pending)
        return
    q = entry.sizes(case)[0]
    X = candidates(entry, acquisition, q, batch=1, seed=entry.pending_seed)
    with torch.no_grad():
        before = evaluate(acquisition, X)
        acquisition = build(entry, case)
        acquisition.set_X_pending(pending)
        value = evaluate(acquisition, X)
        assert value.isfinite().all()
        if entry.pending == "other":
            assert entry.may_be_flat or not torch.equal(value, before)
            return
        other = build(entry, case)
        first, rest = X[..., :q, :], X[..., q:, :]
        joint = torch.cat([first, pending.unsqueeze(0), rest], dim=-2)
        torch.testing.assert_close(value, evaluate(other, joint), rtol=1e-6, atol=1e-9)


def _check_pending_is_refused(acquisition: AcquisitionFunction, pending: Tensor) -> None:
    try:
        acquisition.set_X_pending(pending)
    except (UnsupportedError, ValueError):
        return
    # functions around others and pure functions of pairs take no notice


def check_optimise(entry: Entry, case: Case, q: int) -> None:
    """`optimize_acqf` makes every restart better unless it starts where all is flat; in sequence, none worse.

    BoTorch runs L-BFGS-B for every restart on its own, with the value and gradient of a batch of restarts at once.
    """
    acquisition = build(entry, case)
    start = candidates(entry, acquisition, q)
    with torch.no_grad():
        at_start = torch.cat([evaluate(acquisition, x) for x in start.split(1)])
    X, values = _optimise(entry, case, acquisition, q, batch_initial_conditions=start)
    assert X.shape == (2, q, entry.dim)
    _assert_no_worse(values, at_start)
    start = start.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(evaluate(acquisition, start).sum(), start)
    flat = gradient.abs().amax((-1, -2)) < 1e-4  # L-BFGS-B stops at 1e-5
    better = values - at_start > 1e-11 * (1 + at_start.abs())  # by more than rounding
    assert (flat | better).all(), f"no better than {at_start.tolist()}"
    one_shot = isinstance(acquisition, OneShotAcquisitionFunction)
    if one_shot or entry.pending is None or 1 not in entry.sizes(case) or entry.reason("sequential", case):
        return
    acquisition, best_starts = build(entry, case), list[Tensor]()

    def starts(acq_function: AcquisitionFunction, **_: Any) -> Tensor:
        X = candidates(entry, acq_function, 1)
        with torch.no_grad():
            best_starts.append(torch.cat([evaluate(acq_function, x) for x in X.split(1)]).amax())
        return X

    X, values = _optimise(entry, case, acquisition, 2, sequential=True, ic_generator=starts)
    assert X.shape == (2, entry.dim)
    assert acquisition.X_pending is None
    at_start = torch.stack(best_starts)
    if len(at_start) > len(values):  # L-BFGS-B ended abnormally, as at kinks of risk measures: BoTorch starts once more
        at_start = at_start.unique_consecutive()
    _assert_no_worse(values, at_start)


def _assert_no_worse(values: Tensor, at_start: Tensor) -> None:
    assert values.shape == at_start.shape
    worse = at_start - values
    assert (worse <= 1e-8 * (1 + at_start.abs())).all(), f"started from {at_start.tolist()}, got {values.tolist()}"


def _optimise(
    entry: Entry, case: Case, acquisition: AcquisitionFunction, q: int, sequential: bool = False, **starts: Any
) -> tuple[Tensor, Tensor]:
    """Candidates and values after two steps from two starts; one after the other, those of the best restart."""
    bounds = case.bounds[:, : entry.dim]
    # else BoTorch runs it for the sum over the batch, or a restart's value depends on the others
    in_batches = not get_reasons_against_fast_path("L-BFGS-B", True, {}, None) and not entry.reason("t-batch", case)
    with torch.random.fork_rng(), warnings.catch_warnings():
        torch.manual_seed(SEED)
        warnings.simplefilter("ignore", OptimizationWarning)  # two steps are too few to converge
        warnings.simplefilter("ignore", BotorchTensorDimensionWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        X, values = optimize_acqf(
            acquisition,
            bounds=bounds,
            q=q,
            num_restarts=2,
            raw_samples=2,
            sequential=sequential,
            return_best_only=sequential,
            options={"maxiter": 2, "batch_limit": 2 if in_batches else 1},
            **starts,
        )
    assert ((bounds[0] <= X) & (bounds[1] >= X)).all()
    assert values.isfinite().all()
    return X, values


FUNCTIONS = {
    "value": check_value,
    "gradient": check_gradient,
    "t-batch": check_t_batch,
    "repeat": check_repeat,
    "optimise": check_optimise,
}
CHECKS = ("value", "gradient", "t-batch", "repeat", "pending", "optimise")


def run(check: str, entry: Entry, case: Case) -> None:
    """Run a check: values and gradients for all numbers of candidates, the others for the largest."""
    if check == "pending":
        check_pending(entry, case)
        return
    sizes = entry.sizes(case)
    for q in sizes if check in ("value", "gradient") else sizes[-1:]:
        FUNCTIONS[check](entry, case, q)
