"""Fixtures that every test shares: a fixed seed, a generator, and a guard over torch's global state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import torch

SEED = 20_260_101


@pytest.fixture(autouse=True)
def torch_global_state() -> Iterator[None]:
    """Fix torch's seed before a test; afterwards restore its global state, and fail the test that changed it."""
    import torch

    state = {  # what a test must leave as it found it: getter, setter
        "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
        "default device": (torch.get_default_device, torch.set_default_device),
        "number of threads": (torch.get_num_threads, torch.set_num_threads),
        "grad mode": (torch.is_grad_enabled, torch.set_grad_enabled),
        "anomaly detection": (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        "deterministic algorithms": (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    }
    before = [get() for get, _ in state.values()]
    torch.manual_seed(SEED)
    yield
    changes = []
    for (name, (get, restore)), value in zip(state.items(), before, strict=True):
        if (now := get()) != value:
            changes.append(f"{name}: {value} became {now}")
            restore(value)
    if changes:
        pytest.fail("The test changed torch's global state. " + "; ".join(changes))


@pytest.fixture
def generator() -> torch.Generator:
    """A seeded generator on the CPU."""
    import torch

    return torch.Generator().manual_seed(SEED)


def pytest_configure(config: pytest.Config) -> None:
    """Fix Hypothesis' examples, and keep BoTorch from compiling a kernel that rounds as the machine does.

    With `DEFAULT_DTYPE=double` in the environment, tests run under the default dtype that many users of BoTorch set.
    The process that only hands tests out to others does not pay for the imports.
    """
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return
    import torch
    from botorch.acquisition.multi_objective import logei
    from hypothesis import settings

    settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
    settings.load_profile("fixed")
    logei._load_attempted = True  # else BoTorch compiles one, in a minute
    torch.set_default_dtype(getattr(torch, os.environ.get("DEFAULT_DTYPE", "float32")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `gpu` where there is no CUDA device."""
    import torch

    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu") is not None:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which hosts are not installed: their folders have no tests then, not even skipped ones."""
    for host in ("ax", "optuna"):
        if find_spec(host) is None:
            terminalreporter.write_line(f"Tests of {host} were left out: it is not installed.")
