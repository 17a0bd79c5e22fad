"""Fixtures of the Ax tests."""

import pytest


@pytest.fixture
def made(monkeypatch):
    """The acquisitions that are made while a test runs."""
    from botorch_skewgp.ax.acquisition import SkewGPAcquisition  # Ax may not be installed

    acquisitions, original = [], SkewGPAcquisition.__init__

    def remember(self, *args, **kwargs):
        original(self, *args, **kwargs)
        acquisitions.append(self)

    monkeypatch.setattr(SkewGPAcquisition, "__init__", remember)
    return acquisitions
