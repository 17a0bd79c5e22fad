"""Posteriors are calibrated for every kind of observation and for pairs of kinds; a wrong noise variance is seen."""

import pytest
import torch

from benchmarks import calibration

# simulated grades may lack the lowest, which looks as if they were counted from 1
pytestmark = pytest.mark.filterwarnings("ignore:No grade of:botorch.exceptions.warnings.InputDataWarning")

# A right posterior fails one cell in 5,000 (`LEAST_P_VALUE`); seeds are fixed, so that a cell passes always or never.


@pytest.mark.slow
@pytest.mark.parametrize("name", calibration.KINDS)
def test_a_kind_and_a_noise_wrong_by_a_third(name):
    right, wrong = calibration.calibrate((name,), calibration.REPLICATES[name], (1.0, calibration.WRONG[name]))
    assert right.calibrated, right
    assert not wrong.calibrated, wrong
    assert wrong.spread < 0 or name != "Numeric"


@pytest.mark.slow
@pytest.mark.parametrize("names", calibration.PAIRS, ids=" + ".join)
def test_a_pair_of_kinds(names):
    found = calibration.calibrate(names, calibration.REPLICATES_OF_PAIRS)[0]
    assert found.calibrated, found


def test_statistics_of_uniform_values(generator):
    z, distance = torch.randn(2, 500, 5, dtype=torch.float64, generator=generator)
    assert calibration.statistics(z, distance).calibrated
    z[3, 2] = torch.inf
    assert not calibration.statistics(z, distance).calibrated


@pytest.mark.parametrize("shape", ["narrow", "wide", "shifted", "shrunk"])
def test_statistics_of_values_that_are_not_uniform(shape, generator):
    z = torch.randn(500, 5, dtype=torch.float64, generator=generator)
    distance = torch.randn(500, 5, dtype=torch.float64, generator=generator)
    wrong = {"narrow": 1.2 * z, "wide": z / 1.2, "shifted": z + 0.4, "shrunk": z + 0.2 * distance}[shape]
    found = calibration.statistics(wrong, distance)
    assert not found.calibrated
    assert {"narrow": found.spread > 0, "wide": found.spread < 0, "shrunk": found.shrinkage > 0}.get(shape, True)


def test_a_truth_far_out_has_a_score():
    # 8.6 for a difference whose standard deviation is 2; its cdf rounds to one
    z, _ = calibration.normal_scores(("LabelPreference",), 63, [calibration.TRUTH.times(2 / 3)])
    assert z.isfinite().all()
    assert z.max() > 5
