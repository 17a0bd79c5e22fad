"""Stretches of judges' cut-points: rows, predictions, priors, gradients, what is found again, and what is refused."""

import copy

import pytest
import torch
from botorch.exceptions.errors import InputDataError
from gpytorch.kernels import LinearKernel
from gradients import assert_parameter_gradient

from botorch_skewgp import SkewGP
from botorch_skewgp.kernels.judges import LinearTastesKernel
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, OrdinalLikelihood
from botorch_skewgp.likelihoods.outcome_scale import OutcomeScale
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Numeric, Ordinal

double = torch.double
LIKE = torch.zeros(0, dtype=double)
STRETCH = torch.tensor([0.6, 1.0, 1.8], dtype=double)
CUTS = torch.tensor([-1.1, 0.2, 0.5, 2.0], dtype=double)
X = torch.rand(12, 2, dtype=double, generator=torch.Generator().manual_seed(0))


def grades(m=30, num_grades=5):
    generator = torch.Generator().manual_seed(1)
    number = torch.arange(m)
    found = torch.randint(num_grades, (m,), generator=generator)
    return Ordinal(found, num_grades, index=number % 12, judge=number % 3)


@pytest.mark.parametrize("scale", [OutcomeScale(), OutcomeScale(3.0, 2.0)])
def test_rows_are_those_of_each_judges_own_cutpoints(scale):
    """Given cut-points are in units of the outcome; the middle one is common to all judges."""
    observation = grades()
    rows = OrdinalLikelihood(5, CUTS, stretch=STRETCH).rows(observation, LIKE, scale)
    for judge, factor in enumerate(STRETCH):
        own = OrdinalLikelihood(5, 0.2 + factor * (CUTS - 0.2)).rows(observation, LIKE, scale)
        mine = observation.judge == judge
        for bound in ("lower", "upper"):
            torch.testing.assert_close(getattr(rows, bound)[mine], getattr(own, bound)[mine])
    assert torch.equal(rows.noise, own.noise)


def test_answers_without_a_judge_and_of_new_ones_have_the_average():
    likelihood = OrdinalLikelihood(5, CUTS, stretch=STRETCH)
    middling = OrdinalLikelihood(5, 0.2 + STRETCH.mean() * (CUTS - 0.2))
    nobody = Ordinal([0, 4, 2], 5)
    torch.testing.assert_close(likelihood.rows(nobody, LIKE).upper, middling.rows(nobody, LIKE).upper)
    model = SkewGP(X, grades(), likelihood, approximation="ep")
    latent = model.latent_posterior(X)
    torch.testing.assert_close(model.predictive(X).probs, middling(latent).probs)
    for judge in ("new", 0, 2):
        own = middling if judge == "new" else OrdinalLikelihood(5, 0.2 + STRETCH[judge] * (CUTS - 0.2))
        found = model.predictive(X, judge=judge).probs
        torch.testing.assert_close(found, own(model.for_judge(judge).latent_posterior(X)).probs)


def test_prior_is_of_each_judges_factor_and_the_common_one_is_fixed():
    likelihood = OrdinalLikelihood(5, stretch=STRETCH, learn_stretch=True)
    torch.testing.assert_close(likelihood.stretch, STRETCH)
    assert not likelihood.raw_stretch.requires_grad
    terms = {name: prior.log_prob(read(module)) for name, module, prior, read, _ in likelihood.named_priors()}
    factors = STRETCH.log() - STRETCH.log().mean()
    expected = torch.distributions.Normal(0.0, 0.35).log_prob(factors)
    torch.testing.assert_close(terms["stretch_deviation_prior"].double(), expected)
    assert not any(p.requires_grad for n, p in OrdinalLikelihood(5, CUTS, stretch=STRETCH).named_parameters())
    other = OrdinalLikelihood(5, stretch=torch.ones(3), learn_stretch=True)
    other.load_state_dict(copy.deepcopy(likelihood).state_dict())
    torch.testing.assert_close(other.stretch, STRETCH)


def test_derivatives_of_the_evidence_are_those_of_differences():
    likelihood = MixedLikelihood(
        NumericLikelihood(), OrdinalLikelihood(5, stretch=STRETCH, learn_stretch=True, learn_shift=True)
    )
    model = SkewGP(X, [Numeric(X.sum(-1)[:4]), grades()], likelihood)
    assert_parameter_gradient(SkewGPMarginalLogLikelihood(model.likelihood, model).train())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stretch": torch.ones(1)}, "each of two or more judges"),
        ({"learn_stretch": True}, "each of two or more judges"),
        ({"stretch": torch.tensor([1.0, 0.0])}, "stretch must be"),
        ({"stretch": torch.tensor([1.0, -2.0])}, "stretch must be"),
        ({"stretch": torch.tensor([1.0, float("nan")])}, "stretch must be"),
        ({"stretch": torch.ones(3), "learn_stretch": "yes"}, "learn_stretch must be"),
    ],
)
def test_bad_stretches(arguments, message):
    with pytest.raises(InputDataError, match=message):
        OrdinalLikelihood(4, **arguments)


def test_there_is_a_stretch_for_every_judge_who_answers():
    with pytest.raises(InputDataError, match="stretch has values for 2 judges, but judge 2 gave answers"):
        SkewGP(X, grades(), OrdinalLikelihood(5, stretch=torch.ones(2))).posterior(X)


def test_predictions_for_a_new_judge_average_over_learned_stretches():
    """By many judges drawn from the prior, each with given stretches; wider than at the common one."""
    likelihood = OrdinalLikelihood(5, stretch=torch.ones(3), learn_stretch=True)
    likelihood.stretch_deviation_prior.scale.fill_(0.6)
    model = SkewGP(X, grades(), likelihood, approximation="ep")
    latent = model.for_judge("new").latent_posterior(X)
    generator = torch.Generator().manual_seed(0)
    stretches = (0.6 * torch.randn(400, dtype=double, generator=generator)).exp()
    cuts = likelihood.cutpoints.detach()  # the middle one is 0
    each = torch.stack([OrdinalLikelihood(5, s * cuts)(latent).probs.detach() for s in stretches])
    found = model.predictive(X, judge="new").probs
    error = each.std(0) / 20
    assert bool(((found - each.mean(0)).abs() < 4 * error).all())
    assert bool(((found - OrdinalLikelihood(5, cuts)(latent).probs).abs() > 8 * error).any())
    assert found.shape == (12, 1, 5)
    torch.testing.assert_close(found.sum(-1), torch.ones(12, 1, dtype=double))


@pytest.mark.parametrize("mixed", [False, True])
def test_first_grades_of_a_new_judge(mixed):
    """As if the judge had been there from the start with the common stretch; what is open of it is averaged over."""
    likelihood = OrdinalLikelihood(5, stretch=torch.ones(3), learn_stretch=True)
    likelihood.stretch = STRETCH
    whole = MixedLikelihood(likelihood, NumericLikelihood()) if mixed else likelihood
    settings = {"judge_covar_module": LinearTastesKernel(0), "covar_module": LinearKernel(), "approximation": "ep"}
    model = SkewGP(X, grades(), whole, **settings).eval()
    first = Ordinal([4, 3], 5, index=[0, 1], judge=[4, 4])
    later = model.condition_on_observations(X[:2], first)
    assert len(likelihood.stretch) == 3
    common = STRETCH.log().mean().exp()
    wider = OrdinalLikelihood(5, stretch=torch.cat([STRETCH, common.expand(2)]))
    at_once = SkewGP(X, [grades(), first], wider, **settings).eval()

    def said(model, judge):
        found = model.predictive(X, judge=judge)
        return (found[Ordinal] if isinstance(model.likelihood, MixedLikelihood) else found).probs

    for judge in (0, 4):
        torch.testing.assert_close(said(later, judge), said(at_once, judge))
    likelihood.stretch_deviation_prior.keep_variances(torch.full((3,), 0.01))  # as a fit does
    fitted = model.condition_on_observations(X[:2], first)
    part = fitted.likelihood.for_kind(Ordinal)
    torch.testing.assert_close(
        part.stretch_deviation_prior.judge_variance, torch.tensor([0.01] * 3 + [0.35**2] * 2, dtype=double)
    )
    assert (said(fitted, 4) - said(later, 4)).abs().max() > 1e-3
    fitted.train()
    loss = -SkewGPMarginalLogLikelihood(fitted.likelihood, fitted)(fitted(*fitted.train_inputs), fitted.train_targets)
    loss.backward()
    assert part.stretch_deviation.grad.shape == (5,)
