"""Fixtures of the tests of Optuna."""

import pytest


@pytest.fixture(autouse=True)
def _quiet():
    """Optuna's log is for users."""
    optuna = pytest.importorskip("optuna")
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


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
