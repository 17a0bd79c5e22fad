"""The composite likelihood against evidences of its batches."""

import pytest
import torch
from botorch.fit import fit_gpytorch_mll
from gpytorch.priors import LogNormalPrior
from gradients import assert_parameter_gradient, evaluate
from linear_operator.utils.errors import NotPSDError
from small_cases import CASES, TRAIN_X, log_prior, model_of, skew_prior

from botorch_skewgp import SkewGP
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Numeric, Preference
from botorch_skewgp.papers import BatchedMarginalLogLikelihood
from botorch_skewgp.warpings.parameters import ReadParameter


def batched(model, **kwargs):
    return BatchedMarginalLogLikelihood(model.likelihood, model, **kwargs).train()


def expectation_propagation(model):
    return SkewGPMarginalLogLikelihood(model.likelihood, model).train()


def log_evidence(observations, prior=None):
    model = SkewGP(TRAIN_X / 3, observations, skew_prior=prior)
    model.covar_module.outputscale = 2.0
    value = evaluate(expectation_propagation(model)).item()
    return value - log_prior(model)


@pytest.mark.parametrize("name", CASES)
def test_one_batch_is_the_whole(name):
    for prior in (None, skew_prior()):
        model = model_of(name, prior)
        whole = evaluate(expectation_propagation(model)).item()
        assert evaluate(batched(model, batch_size=100)).item() == pytest.approx(whole, abs=1e-8)


@pytest.mark.parametrize("prior", [None, skew_prior(learn=False)])
def test_batches_of_single_rows(prior):
    """Given a number and the skew prior, each label has the probability by which it raises their evidence."""
    number, labels = Numeric([0.7], noise=0.1), [1, 0, 0, 1]
    model = SkewGP(TRAIN_X / 3, [number, Binary(labels)], skew_prior=prior)
    model.covar_module.outputscale = 2.0
    before = log_evidence(number, prior)
    wanted = before
    for i, label in enumerate(labels):
        label_alone = Binary([label], index=torch.tensor([i]))
        with_label = SkewGP(TRAIN_X / 3, [number, label_alone], likelihood=model.likelihood, skew_prior=prior)
        with_label.covar_module.outputscale = 2.0
        value = evaluate(expectation_propagation(with_label)).item() - log_prior(with_label)
        wanted += value - before
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
    swap = utility[pairs[:, 0]] < utility[pairs[:, 1]]
    pairs = torch.where(swap.unsqueeze(-1), pairs.flip(-1), pairs)
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


def test_a_scale_of_zero_counts_as_impossible():
    """A long step of an optimiser may underflow a positive parameter to zero."""
    model = model_of("labels")
    model.covar_module.register_prior("outputscale_prior", LogNormalPrior(0.0, 1.0), "outputscale")
    model.covar_module.raw_outputscale.data.fill_(-1000.0)
    with pytest.raises(NotPSDError, match="outputscale has the value 0"):
        evaluate(batched(model))
