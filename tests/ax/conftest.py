"""Fixtures of the Ax tests."""

import pytest
from botorch.acquisition.multi_objective import logei
from torch.utils import cpp_extension


@pytest.fixture
def made(monkeypatch):
    """The acquisitions that are made while a test runs."""
    from botorch_skewgp.ax import SkewGPAcquisition  # Ax may not be installed

    acquisitions, original = [], SkewGPAcquisition.__init__

    def remember(self, *args, **kwargs):
        original(self, *args, **kwargs)
        acquisitions.append(self)

    monkeypatch.setattr(SkewGPAcquisition, "__init__", remember)
    return acquisitions


@pytest.fixture
def compilations(monkeypatch):
    """The kernels that torch is asked to compile, none of which is."""
    asked = []
    monkeypatch.setattr(logei, "_load_attempted", False)
    monkeypatch.setattr(cpp_extension, "load", lambda name, **kwargs: asked.append(name))
    yield asked
    assert logei._load_attempted is False
