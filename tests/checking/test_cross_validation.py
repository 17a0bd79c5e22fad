"""Leave-one-out densities against models without the observation."""

import math

import pytest
import torch
from botorch.models.transforms.outcome import Standardize
from tensors import tensor

from botorch_skewgp import SkewGP
from botorch_skewgp.checking import leave_one_out
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.observations import (
    AffineProbit,
    Choice,
    LabelPreference,
    Numeric,
    Ordinal,
    Preference,
    Ranking,
)
from botorch_skewgp.papers import corrected_log_normalizer
from botorch_skewgp.truncated.draws import DrawSettings

SETTINGS = DrawSettings(num_draws=4096, num_chains=4)


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


RANKINGS = torch.tensor([[0, 1, 2, 3], [4, 2, 6, -1], [5, 3, 1, 0], [4, 6, 5, 2]])
OPTIONS = torch.tensor([[0, 1, 2, 3], [4, 3, 6, -1], [5, 6, 1, 2]])


@pytest.mark.parametrize("skew", [False, True])
def test_whole_rankings(skew):
    parts = [([Ranking(without(RANKINGS, i))], Ranking(RANKINGS[i : i + 1])) for i in range(len(RANKINGS))]
    assert_equals_refits(model_of(Ranking(RANKINGS), skew), parts)


def test_whole_choices_between_duels_and_numbers():
    duels, numbers = Preference(PAIRS[:2]), Numeric(tensor(0.4, -0.2), index=torch.tensor([0, 6]))
    model = model_of([duels, Choice(OPTIONS), numbers])
    assert leave_one_out(model).observation.tolist() == [0, 0, 1, 1, 1, 2, 2]
    parts = [
        ([Preference(PAIRS[1 - i : 2 - i]), Choice(OPTIONS), numbers], Preference(PAIRS[i : i + 1])) for i in (0, 1)
    ]
    parts += [([duels, Choice(without(OPTIONS, i)), numbers], Choice(OPTIONS[i : i + 1])) for i in range(3)]
    assert_equals_refits(model, parts)


def test_more_rankings_than_points():
    rankings = torch.cat([RANKINGS, RANKINGS.flip(0), RANKINGS])
    model = model_of(Ranking(rankings))
    found = leave_one_out(model)
    assert found.log_predictive.shape == (12,)
    for i in (1, 4):
        refit = SkewGP(X, Ranking(without(rankings, i)), model.likelihood, model.covar_module, model.mean_module)
        wanted = refit.log_predictive_probability(
            X, Ranking(rankings[i : i + 1]), method=corrected_log_normalizer
        ).item()
        assert found.log_predictive[i].item() == pytest.approx(wanted, abs=0.06)


@pytest.mark.slow
def test_class_labels():
    classes, rows = torch.tensor([0, 2, 1, 1, 0]), torch.arange(5)
    model = model_of(LabelPreference.from_classes(classes, 3))
    parts = [
        (
            [LabelPreference.from_classes(without(classes, i), 3, without(rows, i))],
            LabelPreference.from_classes(classes[i : i + 1], 3, rows[i : i + 1]),
        )
        for i in range(5)
    ]
    assert_equals_refits(model, parts)


def test_units_of_an_affine_probit_are_rows_with_correlated_noise():
    """Rows 0 and 3 share noise, as do 1, 2 and 5 in a chain; row 4 is by itself."""
    covariance = torch.eye(6, dtype=torch.float64)
    for i, j in ((0, 3), (1, 2), (2, 5)):
        covariance[i, j] = covariance[j, i] = 0.6
    eye, lower = torch.eye(7, dtype=torch.float64)[:6], tensor(0.0, -1.0, 0.2, 0.1, 0.0, -0.4)

    def rows(index):
        return AffineProbit(eye[index], 0.3, covariance[index][:, index], lower[index], lower[index] + 1.5)

    units = ([0, 3], [1, 2, 5], [4])
    parts = [([rows([i for i in range(6) if i not in unit])], rows(unit)) for unit in units]
    assert_equals_refits(model_of(rows(list(range(6)))), parts)


def test_a_ranking_against_simulation(generator):
    """The share of simulated pasts that agree with a duel in which a ranking of four comes out as it did."""
    model = model_of([Ranking([[3, 0, 4, 6]]), Preference([[3, 2]])])
    N = 1_000_000
    root = torch.linalg.cholesky(model.covar_module(X).to_dense().detach() + 1e-9 * torch.eye(7, dtype=torch.float64))
    latent = torch.randn(N, 7, generator=generator, dtype=torch.float64) @ root.mT
    ranked, dueled = (latent + torch.randn(N, 7, generator=generator, dtype=torch.float64) for _ in range(2))
    ranked = ranked[:, [3, 0, 4, 6]]
    ordered = (ranked[:, :-1] > ranked[:, 1:]).all(-1)[dueled[:, 3] > dueled[:, 2]].double()
    found = leave_one_out(model)
    error = math.hypot(ordered.std() / ordered.mean() / math.sqrt(len(ordered)), 1 / math.sqrt(found.effective_size[0]))
    assert found.effective_size[0] > 500
    assert abs(found.log_predictive[0].item() - ordered.mean().log().item()) < 4 * error
    assert abs(found.log_predictive[1].item() - math.log(0.5)) > 0.1  # the duel is predicted by the ranking


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
        distribution = torch.distributions.Normal(
            mean + gain @ (values[rest] - mean), (K[i, i] - gain @ K[rest, i]).sqrt()
        )
        assert found.log_predictive[i].item() == pytest.approx(distribution.log_prob(values[i]).item(), abs=1e-8)


def test_effective_size_falls_for_an_outlier():
    """A duel that contradicts many others, with little noise."""
    pairs = torch.tensor([[0, 6]] * 6 + [[6, 0]])
    found = leave_one_out(model_of(Preference(pairs), likelihood=PreferenceLikelihood(0.05)))
    assert found.log_predictive[-1] < -2
    assert found.effective_size[-1] < 0.5 * found.effective_size[:-1].min()
