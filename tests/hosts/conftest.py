"""Fixtures of the tests of both hosts."""

import pytest
from botorch.acquisition.multi_objective import logei
from torch.utils import cpp_extension


@pytest.fixture(autouse=True)
def _quiet():
    """Optuna's log is for users."""
    optuna = pytest.importorskip("optuna")
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


@pytest.fixture
def few_points(monkeypatch):
    """Questions about a small part of the search space."""
    for host in ("ax", "optuna"):
        monkeypatch.setattr(f"botorch_skewgp.{host}.decisions.NUM_SPREAD", 16)


@pytest.fixture
def compilations(monkeypatch):
    """The kernels that torch is asked to compile, none of which is."""
    asked = []
    monkeypatch.setattr(logei, "_load_attempted", False)
    monkeypatch.setattr(cpp_extension, "load", lambda name, **kwargs: asked.append(name))
    yield asked
    assert logei._load_attempted is False
