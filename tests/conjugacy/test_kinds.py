"""Every kind of observation against simulation of how it comes about: moments, quantiles, evidence."""

import logging

import gpytorch
import pytest
import torch
from generative_reference import deviations, log_evidence, rbf
from kind_cases import (
    KINDS,
    LABELS,
    LENGTHSCALE,
    NUM_LABELS,
    OUTPUTSCALE,
    TEST_X,
    TRAIN_X,
    kernel,
    label_model_of,
    label_reference_of,
    mean,
    model_of,
    reference_of,
    tensor,
)

from botorch_skewgp import SkewGP
from botorch_skewgp.models import SkewPrior
from botorch_skewgp.truncated.draws import DrawSettings

# 28 statistics in a case, strongly dependent; 4.5 is passed by chance once in some 5,000 cases
LIMIT = 4.5
EP_ERROR = 0.05  # nats

log = logging.getLogger(__name__)  # `--log-cli-level=info` shows how far off each case is


def check(model, posterior, reference, own_log_evidence, least_effective_size=1000):
    found = deviations(model, posterior, reference)
    ep_error = float(reference.log_evidence.value) - own_log_evidence
    log.info("deviations %s, error of EP's log evidence %.4f", {k: round(v, 2) for k, v in found.items()}, ep_error)
    assert reference.effective_size > least_effective_size
    assert max(found.values()) < LIMIT, found
    assert abs(ep_error) < EP_ERROR + 4 * float(reference.log_evidence.error)


# two of the items against two others: the four differences of noise are linearly dependent
@pytest.mark.parametrize("name", KINDS)
def test_posterior_and_evidence_of_a_kind(name, generator):
    observation = KINDS[name]
    model = model_of(observation, num_draws=4096)
    reference = reference_of(observation, generator, num_draws=150_000)
    check(model, model.posterior(TEST_X), reference, log_evidence(model))


@pytest.mark.parametrize("name", LABELS)
def test_posterior_and_evidence_of_labels(name, generator):
    model = label_model_of(LABELS[name])
    reference = label_reference_of(LABELS[name], generator)
    check(model, model.posterior(TEST_X), reference, log_evidence(model))


def test_labels_with_a_kernel_each(generator):
    scales, lengthscales = [0.5, 1.5, 3.0], [0.3, 0.7, 1.5]
    base = gpytorch.kernels.RBFKernel(batch_shape=torch.Size([NUM_LABELS]))
    covar_module = gpytorch.kernels.ScaleKernel(base, batch_shape=torch.Size([NUM_LABELS])).double()
    covar_module.initialize(outputscale=tensor(*scales))
    covar_module.base_kernel.initialize(lengthscale=tensor(*lengthscales).view(-1, 1, 1))
    model = label_model_of(LABELS["classes"], covar_module)
    kernels = list(zip(scales, lengthscales, strict=True))
    reference = label_reference_of(LABELS["classes"], generator, kernels)
    check(model, model.posterior(TEST_X), reference, log_evidence(model))


@pytest.mark.parametrize("name", ["numeric", "preference", "validity", "slope", "none"])
def test_skew_prior_with_data(name, generator):
    points, phases, truncation = tensor(0.4, 1.8).unsqueeze(-1), tensor(1.0, -1.0), tensor(0.1, -0.4)
    observations = [] if name == "none" else [KINDS[name]]
    model = model_of(observations, skew_prior=SkewPrior(points, phases, truncation))
    reference = reference_of(observations, generator, pseudo=(points, phases, truncation), num_draws=300_000)
    check(model, model.posterior(TEST_X), reference, log_evidence(model))


@pytest.mark.slow
def test_all_kinds_at_once(generator):
    observations = list(KINDS.values())
    model = model_of(observations)
    reference = reference_of(observations, generator, num_draws=800_000, adaptive=True)
    check(model, model.posterior(TEST_X), reference, log_evidence(model), least_effective_size=300)


def test_default_likelihood_takes_every_kind_at_once():
    model = SkewGP(
        TRAIN_X,
        list(KINDS.values()),
        covar_module=kernel(),
        mean_module=mean(),
        draw_settings=DrawSettings(num_draws=64, num_chains=2, min_effective_size=1),
    )
    assert model.posterior(TEST_X).mean.isfinite().all()


def test_constants_are_those_of_the_model():
    """The covariance written out is the model's, so that the comparison above is of posteriors."""
    K = kernel()(TRAIN_X).to_dense()
    assert torch.allclose(K, rbf(TRAIN_X, TRAIN_X, OUTPUTSCALE, LENGTHSCALE), rtol=1e-12, atol=1e-14)
