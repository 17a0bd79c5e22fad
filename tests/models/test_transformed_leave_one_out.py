"""Leave-one-out in closed form, against models without the point."""

import copy
import dataclasses

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from transformed_cases import WARPINGS, data, model, shared

from botorch_skewgp.models.transformed_leave_one_out import leave_one_out_laws
from botorch_skewgp.models.transformed_nodes import Nodes


@pytest.mark.parametrize("name", WARPINGS)
def test_leave_one_out_equals_refits(name):
    X, Y = data()
    transformed = shared(name, tolerance=0.0)
    left_out, nodes = transformed.leave_one_out(), transformed.weighted_nodes
    quadrature = nodes.log_weight - nodes.log_likelihood - transformed.log_prior(nodes.u)
    for i in (0, int(Y.argmax())):
        rest = torch.arange(len(X)) != i
        refit = copy.deepcopy(transformed)
        refit.set_train_data(X[rest], Y[rest].squeeze(-1))
        refit.use_nodes(Nodes(nodes.u, quadrature.detach(), nodes.sign))
        law = refit.posterior(X[i : i + 1], observation_noise=True)
        for level in (0.05, 0.5, 0.9):
            expected = law.quantile(level).squeeze()
            assert left_out.posterior.quantile(level)[i].item() == pytest.approx(expected.item(), rel=1e-9)
        assert left_out.level[i].item() == pytest.approx(law.cdf(Y[i].item()).item(), rel=1e-9)
        assert left_out.log_density[i].item() == pytest.approx(law.log_density(Y[i].item()).item(), rel=1e-9)


def test_too_few_points_to_leave_one_out():
    X, Y = data(n=3)
    transformed = model("identity", X, Y, num_nodes=4)
    transformed.set_train_data(X, Y.squeeze(-1))
    assert transformed.leave_one_out().log_density.isfinite().all()
    with pytest.raises(UnsupportedError, match="none for the scale"):
        leave_one_out_laws(_of_two_points(transformed), torch.zeros(1, 2, dtype=X.dtype))


def _of_two_points(transformed):
    """What only a model that is made by hand can have: one degree of freedom."""
    data = transformed._data
    data = dataclasses.replace(data, X=data.X[:2], y=data.y[:2], basis=data.basis[:2])
    return data.weigh(transformed.coordinates().unsqueeze(0))
