"""The composite likelihood against evidences of its batches; Proposition 1's bound, where it holds and is vacuous."""

import math

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from gpytorch.means import ConstantMean
from gpytorch.priors import LogNormalPrior
from gradients import assert_parameter_gradient, evaluate
from small_cases import CASES, TRAIN_X, exact_objective, log_prior, log_probability, model_of, skew_prior

from botorch_skewgp import SkewGP
from botorch_skewgp.exceptions import VacuousBoundWarning
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Numeric, Preference
from botorch_skewgp.papers import BatchBoundMarginalLogLikelihood, BatchedMarginalLogLikelihood
from botorch_skewgp.parameters import ReadParameter

WARNING = "bounds nothing"


def batched(model, objective=BatchedMarginalLogLikelihood, **kwargs):
    return objective(model.likelihood, model, **kwargs).train()


def bound_of(model, **kwargs):
    return batched(model, BatchBoundMarginalLogLikelihood, **kwargs)


def expectation_propagation(model):
    return batched(model, SkewGPMarginalLogLikelihood)


def log_evidence(observations, **parts):
    model = SkewGP(TRAIN_X / 3, observations, **parts)
    model.covar_module.outputscale = 2.0
    return evaluate(expectation_propagation(model)).item() - log_prior(model)


@pytest.mark.parametrize("name", CASES)
def test_one_batch_is_the_whole(name):
    for prior in (None, skew_prior()):
        model = model_of(name, prior)
        whole = evaluate(expectation_propagation(model)).item()
        for objective in (batched, bound_of):
            assert evaluate(objective(model, batch_size=100)).item() == pytest.approx(whole, abs=1e-8)


@pytest.mark.parametrize("prior", [None, skew_prior(learn=False)])
def test_batches_of_single_rows(prior):
    """Given a number and the skew prior, each label has the probability by which it raises their evidence."""
    number, labels = Numeric([0.7], noise=0.1), [1, 0, 0, 1]
    model = SkewGP(TRAIN_X / 3, [number, Binary(labels)], skew_prior=prior)
    model.covar_module.outputscale = 2.0
    wanted = before = log_evidence(number, skew_prior=prior)
    for i, label in enumerate(labels):
        label_alone = Binary([label], index=torch.tensor([i]))
        wanted += log_evidence([number, label_alone], likelihood=model.likelihood, skew_prior=prior) - before
    found = evaluate(batched(model, batch_size=1)).item() - log_prior(model)
    assert found == pytest.approx(wanted, abs=1e-7)


@pytest.mark.parametrize(("num_rows", "batch_size"), [(10, 3), (9, 3), (1, 5), (7, 7), (8, 7), (0, 3)])
def test_batches_are_disjoint_complete_and_nearly_equal(num_rows, batch_size):
    groups = batched(model_of("labels"), batch_size=batch_size)._partition(num_rows)
    assert sorted(torch.cat([g.flatten() for g in groups]).tolist() if groups else []) == list(range(num_rows))
    sizes = [g.shape[-1] for g in groups]
    assert not sizes or (max(sizes) <= batch_size and max(sizes) - min(sizes) <= 1)


def test_batches_are_fixed_by_the_seed():
    values = [evaluate(batched(model_of("labels"), batch_size=2, seed=seed)).item() for seed in (0, 0, 1, 2)]
    assert values[0] == values[1]
    assert len(set(values)) > 1
    mll = batched(model_of("labels"), batch_size=2)
    assert evaluate(mll).item() == pytest.approx(evaluate(mll).item(), abs=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_gradient_in_every_hyperparameter(name):
    prior = skew_prior() if name in ("labels", "numbers and duels") else None
    mll = batched(model_of(name, prior), batch_size=2)
    assert_parameter_gradient(mll)


def test_fits_with_priors_and_repeats():
    """Duels over few points, so that batches have a low-rank covariance or a dense one, as their size goes."""
    generator = torch.Generator().manual_seed(1)
    X = torch.rand(8, 2, dtype=torch.float64, generator=generator)
    utility = X.sum(-1)
    pairs = torch.randint(8, (60, 2), generator=generator)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    pairs = pairs.gather(-1, utility[pairs].argsort(-1, descending=True))
    for batch_size in (5, 20):
        fitted = []
        for _ in range(2):
            model = SkewGP(X, Preference(pairs))
            mll = batched(model, batch_size=batch_size)
            before = evaluate(mll).item()
            fit_gpytorch_mll(mll)
            assert evaluate(mll.train()).item() > before + 1
            fitted.append(model.covar_module.outputscale.item())
        assert fitted[0] == fitted[1]


def test_a_prior_counts_once():
    """The likelihood's priors are reached through the objective and through the model."""
    model = model_of("labels")
    without = evaluate(batched(model)).item()
    model.likelihood.register_prior("noise_prior", LogNormalPrior(0.0, 1.0), ReadParameter("noise"))
    added = LogNormalPrior(0.0, 1.0).log_prob(model.likelihood.noise.detach()).item()
    assert evaluate(batched(model)).item() == pytest.approx(without + added, abs=1e-9)


def test_refuses_empty_batches():
    with pytest.raises(ValueError, match="batch_size must be positive"):
        batched(model_of("labels"), batch_size=0)


# The bound


def probability_bound(mll):
    with torch.no_grad():
        return mll.bound(mll.model(*mll.model.train_inputs), mll.model.train_targets).item()


def nearly_certain(prior=None, numbers=()):
    """All labels are 1 and the mean is high: every row has a probability of about 0.96."""
    observations = [Binary([1, 1, 1, 1, 1, 1]), *numbers]
    model = SkewGP(TRAIN_X / 3, observations, mean_module=ConstantMean(), skew_prior=prior)
    model.mean_module.initialize(constant=3.0)
    return model


def test_formula_for_single_rows():
    """`sum_i p_i - (m - 1)` with marginal probabilities in closed form."""
    model = nearly_certain()
    p = 0.5 * math.erfc(-3.0 / math.sqrt(2 * (model.covar_module.outputscale.item() + 1)))
    assert probability_bound(bound_of(model, batch_size=1)) == pytest.approx(6 * p - 5, abs=1e-9)


@pytest.mark.parametrize("numbers", [(), (Numeric([0.5], noise=0.1, index=[2]),)])
def test_a_skew_prior_joins_every_batch_and_its_normaliser_divides(numbers):
    """`sum_i P(row i | prior's rows) - (m - 1)`, given the number if there is one, by cubature."""
    model = nearly_certain(skew_prior(learn=False), numbers)
    mll = bound_of(model, batch_size=1)
    with torch.no_grad():
        rows = model.evidence(model(*model.train_inputs)).rows
    every = [log_probability(rows.select(torch.tensor([0, 1, 2 + i]))) for i in range(6)]
    of_prior = log_probability(rows.select(torch.tensor([0, 1])))
    wanted = sum(math.exp(one - of_prior) for one in every) - 5
    assert 0.1 < wanted < 0.95
    assert probability_bound(mll) == pytest.approx(wanted, abs=0.01)
    assert evaluate(mll).item() < exact_objective(model) - 1e-3


@pytest.mark.parametrize("prior", [None, skew_prior(learn=False)])
@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_is_below_the_exact_evidence(batch_size, prior):
    model = nearly_certain(prior)
    mll = bound_of(model, batch_size=batch_size)
    assert 0 < probability_bound(mll) < 1
    assert evaluate(mll).item() < exact_objective(model) - 1e-3


def test_says_when_it_is_vacuous():
    mll = bound_of(model_of("labels"), batch_size=1)
    assert probability_bound(mll) < 0
    with pytest.warns(VacuousBoundWarning, match=WARNING):
        assert evaluate(mll).isfinite()


@pytest.mark.filterwarnings(f"ignore:.*{WARNING}:botorch_skewgp.exceptions.VacuousBoundWarning")  # on purpose
@pytest.mark.parametrize("model", [model_of("labels"), model_of("labels", skew_prior()), nearly_certain()])
def test_gradient_of_a_bound_and_of_a_vacuous_one(model):
    assert_parameter_gradient(bound_of(model, batch_size=2), atol=1e-5)


@pytest.mark.filterwarnings(f"ignore:.*{WARNING}:botorch_skewgp.exceptions.VacuousBoundWarning")  # on purpose
def test_order_of_hyperparameters_is_that_of_the_bound():
    """Through the place where the logarithm gives way to its tangent."""
    values, bounds = [], []
    for constant in torch.linspace(1.0, 3.0, 10).tolist():
        model = nearly_certain()
        model.mean_module.initialize(constant=constant)
        mll = bound_of(model, batch_size=1)
        values.append(evaluate(mll).item())
        bounds.append(probability_bound(mll))
    assert bounds[0] < 0 < bounds[-1]
    assert bounds == sorted(bounds)
    assert values == sorted(values)
    # of the tangent where the bound is .01
    assert values[1] - values[0] == pytest.approx(100 * (bounds[1] - bounds[0]))
