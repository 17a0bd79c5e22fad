"""Fixtures of the tests of Optuna, which are left out where it is not installed."""

from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("optuna") else ["test_*.py"]


@pytest.fixture
def num_fits(monkeypatch):
    """The numbers of observations that models were fitted to."""
    from botorch_skewgp.optuna import study_model  # Optuna may not be installed

    sizes, fit = [], study_model.fit_gpytorch_mll

    def counted(mll, **options):
        sizes.append(sum(entry.num_answers for entry in mll.model.observations))
        return fit(mll, **options)

    monkeypatch.setattr(study_model, "fit_gpytorch_mll", counted)
    return sizes
