"""Leave-one-out densities against models without the observation; the information score."""

import math

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.models.transforms.outcome import Standardize

from botorch_skewgp import SkewGP
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.models.model_checking import information_score, leave_one_out
from botorch_skewgp.observations import Binary, Numeric, Ordinal, Preference
from botorch_skewgp.truncated.draws import DrawSettings

SETTINGS = DrawSettings(num_draws=4096, num_chains=4)


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


X = tensor(0.0, 0.15, 0.3, 0.45, 0.65, 0.8, 1.0).unsqueeze(-1)
PAIRS = torch.tensor([[0, 1], [2, 1], [2, 3], [4, 5], [5, 6], [3, 4]])
PRIOR = (tensor(0.2, 0.9).unsqueeze(-1), tensor(1.0, -1.0), tensor(0.1, -0.4))


def model_of(observations, skew=False, likelihood=None):
    prior = SkewPrior(*PRIOR) if skew else None
    model = SkewGP(X, observations, likelihood, skew_prior=prior, draw_settings=SETTINGS)
    model.covar_module.outputscale = 3.0
    model.covar_module.base_kernel.lengthscale = 0.4
    return model


def assert_equals_refits(model, parts):
    """`parts` lists, for each row, the observations without it and the one left out."""
    found = leave_one_out(model)
    for i, (rest, left_out) in enumerate(parts):
        refit = SkewGP(X, rest, model.likelihood, model.covar_module, model.mean_module, model.skew_prior)
        refit.draw_settings = SETTINGS
        wanted = refit.log_predictive_probability(X, left_out, method="exact").item()
        error = 1 / math.sqrt(found.effective_size[i].item())
        assert found.log_predictive[i].item() == pytest.approx(wanted, abs=4 * error + 0.02), i
        assert error < 0.15


def without(x, i):
    return torch.cat([x[:i], x[i + 1 :]])


@pytest.mark.parametrize("skew", [False, True])
def test_duels(skew):
    parts = [([Preference(without(PAIRS, i))], Preference(PAIRS[i : i + 1])) for i in range(len(PAIRS))]
    assert_equals_refits(model_of(Preference(PAIRS), skew), parts)


def test_more_duels_than_points():
    pairs = torch.cat([PAIRS, PAIRS[:3], PAIRS[3:].flip(-1)])
    model = model_of(Preference(pairs))
    parts = [([Preference(without(pairs, i))], Preference(pairs[i : i + 1])) for i in (0, 5, 10)]
    found = leave_one_out(model)
    assert found.log_predictive.shape == (12,)
    found = [found.log_predictive[i] for i in (0, 5, 10)]
    for value, (rest, left_out) in zip(found, parts, strict=True):
        refit = SkewGP(X, rest, model.likelihood, model.covar_module, model.mean_module)
        assert value.item() == pytest.approx(refit.log_predictive_probability(X, left_out).item(), abs=0.05)


def test_numbers_grades_and_duels_in_their_order():
    values, at = tensor(0.4, -0.2, 0.3), torch.tensor([0, 3, 5])
    grades = Ordinal([0, 2], 3, index=torch.tensor([1, 6]))
    model = model_of([Preference(PAIRS[:2]), Numeric(values, index=at), grades])
    found = leave_one_out(model)
    assert found.observation.tolist() == [0, 0, 1, 1, 1, 2, 2]
    parts = [
        ([Preference(PAIRS[1 - i : 2 - i]), Numeric(values, index=at), grades], Preference(PAIRS[i : i + 1]))
        for i in range(2)
    ]
    for i in range(3):
        rest = Numeric(without(values, i), index=without(at, i))
        parts.append(([Preference(PAIRS[:2]), rest, grades], Numeric(values[i : i + 1], index=at[i : i + 1])))
    assert_equals_refits(model, parts)


def test_numbers_alone_are_exact_and_in_units_of_the_outcome():
    values = tensor(3.0, 5.0, 1.0, 2.0)
    model = SkewGP(X[:4], Numeric(values, noise=torch.full_like(values, 0.3)), outcome_transform=Standardize(m=1))
    found = leave_one_out(model)
    assert found.effective_size.isinf().all()
    K = model.covar_module(X[:4]).to_dense().detach() * values.var() + 0.3 * torch.eye(4, dtype=torch.float64)
    mean = values.mean()
    for i in range(4):
        rest = [j for j in range(4) if j != i]
        gain = torch.linalg.solve(K[rest][:, rest], K[rest, i])
        law = torch.distributions.Normal(mean + gain @ (values[rest] - mean), (K[i, i] - gain @ K[rest, i]).sqrt())
        assert found.log_predictive[i].item() == pytest.approx(law.log_prob(values[i]).item(), abs=1e-8)


def test_effective_size_falls_for_an_outlier():
    """A duel that contradicts many others, with little noise."""
    pairs = torch.tensor([[0, 6]] * 6 + [[6, 0]])
    found = leave_one_out(model_of(Preference(pairs), likelihood=PreferenceLikelihood(0.05)))
    assert found.log_predictive[-1] < -2
    assert found.effective_size[-1] < 0.5 * found.effective_size[:-1].min()


def test_information_score_in_bits():
    labels = torch.tensor([1, 0, 1, 1])
    assert information_score(tensor(1.0, 0.0, 1.0, 1.0), labels) == 1
    assert information_score(tensor(0.5, 0.5, 0.5, 0.5), labels) == 0
    p = tensor(0.8, 0.3, 0.6, 0.9)
    wanted = 1 + sum(math.log2(q) for q in (0.8, 0.7, 0.6, 0.9)) / 4
    assert information_score(p, labels).item() == pytest.approx(wanted)
    assert information_score(torch.stack([p, p]), labels).shape == (2,)


def test_information_score_of_a_model():
    model = SkewGP(X, Binary([0, 0, 0, 1, 1, 1, 1]))
    score = information_score(model.predictive(X).probs.squeeze(-1).detach(), torch.tensor([0, 0, 0, 1, 1, 1, 1]))
    assert 0 < score < 1


@pytest.mark.parametrize(("p", "y"), [([0.5, 1.2], [0, 1]), ([0.5, math.nan], [0, 1]), ([0.5, 0.5], [0, 2])])
def test_information_score_refuses(p, y):
    with pytest.raises(InputDataError):
        information_score(tensor(*p), torch.tensor(y))
