"""Several judges at once: their joint posterior, and what a committee chooses."""

import pytest
import torch
from botorch.acquisition import qKnowledgeGradient, qLogExpectedImprovement
from botorch.acquisition.objective import ExpectationPosteriorTransform, LinearMCObjective, ScalarizedPosteriorTransform
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.sampling import SobolQMCNormalSampler
from judge_cases import X, double, model_of, own_kernel, wants

from botorch_skewgp import SkewGP
from botorch_skewgp.models import Committee
from botorch_skewgp.observations import Numeric, Preference

Q = torch.rand(3, 2, dtype=double, generator=torch.Generator().manual_seed(1))
WHO = [0, 2, "new"]


@pytest.mark.parametrize("inducing", [None, X[:3]])
def test_each_output_is_the_posterior_of_its_judge(inducing):
    model = model_of(wants([1, 1, -1]), inducing_points=inducing)
    joint = model.posterior(Q, judge=WHO)
    assert joint.mean.shape == (3, 3)
    for place, judge in enumerate(WHO):
        one = model.posterior(Q, judge=judge)
        assert torch.allclose(joint.mean[..., place : place + 1], one.mean, atol=1e-8)
        assert torch.allclose(joint.variance[..., place : place + 1], one.variance, atol=1e-8)
    assert float(torch.linalg.eigvalsh(joint.covariance_matrix)[0]) > -1e-8
    assert torch.allclose(model.posterior(Q, judge=WHO, output_indices=[1]).mean, joint.mean[..., 1:2])


@pytest.mark.parametrize("inducing", [None, X[:3]])
def test_every_judge_at_every_point_is_a_list_of_judges_at_points(inducing):
    model = model_of(wants([1, 1, -1]), inducing_points=inducing)
    crossed = model.latent_posterior(Q, judges=WHO, crossed=True)
    listed = model.latent_posterior(Q.repeat_interleave(3, dim=0), judges=3 * WHO)
    assert torch.allclose(crossed.mean.flatten(), listed.mean.flatten(), atol=1e-10)
    assert torch.allclose(crossed.covariance_matrix, listed.covariance_matrix, atol=1e-10)


def test_a_committee_does_not_depend_on_whom_its_model_is_for():
    model = model_of(wants([1, 1, -1]))
    expected, found = (Committee(one, [None, 0]).posterior(Q) for one in (model, model.for_judge(1)))
    assert torch.equal(found.mean, expected.mean)
    assert torch.allclose(found.mean[..., :1], model.posterior(Q).mean)


def test_joint_covariance_of_numbers_is_that_of_a_gaussian_process():
    """By hand, from the kernel of what is shared and of each judge's own."""
    numbers = Numeric([0.1, 0.5, -0.3, 0.8], noise=0.1, index=[0, 1, 2, 3], judge=[0, 1, 1, 0])
    own = own_kernel()
    model = SkewGP(X, numbers, judge_covar_module=own)
    points = torch.cat([X[:4], Q[:2].repeat_interleave(2, dim=0)])  # each point of two judges, judges fastest
    by = torch.tensor([0, 1, 1, 0, 0, 1, 0, 1])
    K = model.covar_module(points).to_dense() + own(points).to_dense() * (by.unsqueeze(-1) == by)
    gain = torch.linalg.solve(K[:4, :4] + 0.1 * torch.eye(4, dtype=double), K[:4, 4:]).mT
    joint = model.posterior(Q[:2], judge=[0, 1])
    assert torch.allclose(joint.mean.flatten(), gain @ numbers.values, atol=1e-6)
    assert torch.allclose(joint.covariance_matrix, K[4:, 4:] - gain @ K[:4, 4:], atol=1e-6)


def test_exact_draws_have_a_joint_posterior_too():
    model = SkewGP(X, wants([1, -1]), judge_covar_module=own_kernel())
    joint = model.posterior(Q, judge=[0, 1])
    assert torch.allclose(joint.mean[..., :1], model.posterior(Q, judge=0).mean)
    samples = joint.rsample(torch.Size([4096]))
    assert samples.shape == (4096, 3, 2)
    assert bool(((samples.mean(0) - joint.mean).abs() < 5 * (joint.variance / 4096).sqrt()).all())


def test_outcome_scale_is_that_of_one_judge():
    from botorch.models.transforms.outcome import Standardize

    numbers = Numeric([10.0, 50.0, -30.0, 80.0], noise=1.0, index=[0, 1, 2, 3], judge=[0, 1, 1, 0])
    model = SkewGP(X, numbers, judge_covar_module=own_kernel(), outcome_transform=Standardize(m=1))
    joint, one = model.posterior(Q, judge=[0, 1]), model.posterior(Q, judge=1)
    assert torch.allclose(joint.mean[..., 1:], one.mean)
    assert torch.allclose(joint.variance[..., 1:], one.variance)


def test_weighted_utilities_are_botorchs():
    committee = model_of(wants([1, 1, -1])).for_judge([0, 1, 2])
    weights = torch.tensor([0.5, 0.3, 0.2], dtype=double)
    weighted = committee.posterior(Q, posterior_transform=ScalarizedPosteriorTransform(weights))
    assert torch.allclose(weighted.mean.squeeze(-1), committee.posterior(Q).mean @ weights)
    acquisition = qLogExpectedImprovement(
        committee,
        best_f=0.0,
        sampler=SobolQMCNormalSampler(torch.Size([32]), seed=0),
        objective=LinearMCObjective(weights),
    )
    point = Q[:1].clone().requires_grad_()
    acquisition(point).backward()
    assert bool(point.grad.isfinite().all())


def test_averages_over_points_stay_skewed_posteriors():
    committee = model_of(wants([1, -1])).for_judge([0, 1])
    average = committee.posterior(Q, posterior_transform=ExpectationPosteriorTransform(n_w=3))
    assert torch.allclose(average.mean, committee.posterior(Q).mean.mean(0, keepdim=True))


def test_bad_committees_are_refused_in_words():
    model = model_of(wants([1, -1]))
    with pytest.raises(InputDataError, match="must name at least one judge"):
        model.for_judge([])
    with pytest.raises(InputDataError, match="gave answers"):
        model.posterior(Q, judge=[0, 7])
    with pytest.raises(InputDataError, match="two judges"):
        SkewGP(X, Preference([[0, 1]])).for_judge([0])
    with pytest.raises(UnsupportedError, match=r"output_indices must name outputs 0 to 1; got \[5\]"):
        model.posterior(Q, judge=[0, 1], output_indices=[5])
    with pytest.raises(UnsupportedError, match="one judge"):
        model.posterior(Q, judge=[0, 1], observation_noise=True)
    mean = ScalarizedPosteriorTransform(torch.tensor([0.5, 0.5], dtype=double))
    ahead = qKnowledgeGradient(model.for_judge([0, 1]), num_fantasies=2, posterior_transform=mean)
    with pytest.raises(UnsupportedError, match=r"committee has no fantasies.*model.for_judge\(j\)"):
        ahead(Q.unsqueeze(0))
    fantasy = model.for_judge(0).condition_on_observations(X[:2].unsqueeze(0), torch.tensor([[[0, 1]]]))
    with pytest.raises(UnsupportedError, match="model of data"):
        fantasy.posterior(Q, judge=[0, 1])
