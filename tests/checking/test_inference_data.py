"""ArviZ's summaries of a model's draws agree with the model itself."""

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models.transforms.input import Normalize
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_skewgp import SkewGP
from botorch_skewgp.checking import leave_one_out, to_arviz
from botorch_skewgp.observations import Binary, Numeric, Preference


@pytest.fixture(scope="module")
def az():
    return pytest.importorskip("arviz")  # two seconds, which other processes do not need


X = 10 * torch.linspace(0, 1, 7, dtype=torch.double).unsqueeze(-1)
DUELS = Preference([[1, 0], [1, 2], [2, 3], [4, 3], [1, 5]])
NUMBERS = Numeric([0.9, -0.7], index=[1, 6])


def model_of(observations, lengthscale=0.4):
    model = SkewGP(X, observations, input_transform=Normalize(1))
    model.covar_module.outputscale, model.covar_module.base_kernel.lengthscale = 3.0, lengthscale
    return model.eval()


@pytest.fixture(scope="module")
def model():
    return model_of([DUELS, NUMBERS])


@pytest.fixture(scope="module")
def data(az, model):
    return to_arviz(model)


def test_summary_is_the_posteriors(az, model, data):
    table = az.summary(data, var_names="f", round_to="none")
    posterior = model.posterior(X)
    for column, expected in (("mean", posterior.mean), ("sd", posterior.variance.sqrt())):
        error = torch.tensor(table[f"mcse_{column}"].to_numpy())
        off = (torch.tensor(table[column].to_numpy()) - expected.detach().squeeze(-1)).abs()
        assert (off < 4 * error).all(), column
    assert table["r_hat"].max() < 1.02


def test_chains_stay_together(model, data):
    rows = model.draws.rows.unflatten(0, (model.draws.num_chains, -1))  # chain x draw x row
    f = torch.tensor(data.posterior["f"].to_numpy())
    together = torch.corrcoef(torch.stack([rows[..., 0].ravel(), (f[..., 1] - f[..., 0]).ravel()]))[0, 1]
    assert together > 0.2  # the first row is this difference plus noise; 0 but for 0.02 if the order were another


def test_loo_is_leave_one_out(az, model, data):
    found, expected = az.loo(data, pointwise=True), leave_one_out(model)
    assert found.pareto_k.max() < 0.7
    torch.testing.assert_close(torch.tensor(found.loo_i.to_numpy()), expected.log_predictive, atol=0.01, rtol=0)
    assert data.constant_data["observation"].to_numpy().tolist() == expected.observation.tolist() == [0] * 5 + [1] * 2


def test_compare_ranks_as_leave_one_out_does(az):
    models = {"smooth": model_of(DUELS), "rough": model_of(DUELS, 0.01)}
    table = az.compare({name: to_arviz(model) for name, model in models.items()})
    scores = {name: leave_one_out(model).log_predictive.sum().item() for name, model in models.items()}
    better, worse = sorted(scores, key=scores.get, reverse=True)
    assert list(table.index) == [better, worse]
    assert scores[better] > scores[worse] + 0.3
    assert table["elpd_diff"].iloc[1] == pytest.approx(scores[better] - scores[worse], abs=0.05)


def test_models_without_draws_are_refused(az):
    with pytest.raises(UnsupportedError, match=r"Numbers alone .* leave_one_out"):
        to_arviz(model_of(NUMBERS))
    with pytest.raises(UnsupportedError, match="has no draws"):
        to_arviz(SkewGP(X / 10, DUELS, approximation="ep"))


@pytest.mark.parametrize("outputscale", [10.0, 1e3, 1e5])
def test_loo_is_finite_for_answers_that_are_certain(az, outputscale):
    """As after a fit without priors, which trusts consistent labels."""
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(40, 2, dtype=torch.double, generator=generator)
    model = SkewGP(X, Binary((X[:, 0] > 0.5).long()), covar_module=ScaleKernel(RBFKernel()))
    model.covar_module.outputscale, model.covar_module.base_kernel.lengthscale = outputscale, 0.5
    exact = leave_one_out(model)
    found = az.loo(to_arviz(model), pointwise=True)
    assert bool(torch.tensor(found.loo_i.values).isfinite().all())
    if outputscale == 10:  # beyond, few draws tell what the model without an answer would say
        assert found.elpd_loo == pytest.approx(float(exact.log_predictive.sum()), abs=0.5)
