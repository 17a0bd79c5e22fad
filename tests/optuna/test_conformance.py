"""Optuna's own conformance suite of samplers."""

from collections.abc import Callable

import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import BasicSamplerTestCase, MultiObjectiveSamplerTestCase, RelativeSamplerTestCase

from botorch_skewgp.optuna import SkewGPSampler


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
class TestSkewGPSampler(BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        """A sampler whose model chooses from the second trial on, as the cases of relative sampling need."""
        return lambda: SkewGPSampler(seed=0, n_startup_trials=1)
