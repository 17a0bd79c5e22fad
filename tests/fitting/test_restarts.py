"""Several starts, and starts drawn from the priors of every module."""

import pytest
import torch
from botorch.exceptions.errors import InputDataError, ModelFittingError
from botorch.optim.utils import sample_all_priors
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.priors import GammaPrior, LogNormalPrior, NormalPrior
from gradients import evaluate
from linear_operator.utils.errors import NotPSDError

from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp
from botorch_skewgp.likelihoods import (
    LabelPreferenceLikelihood,
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, LabelPreference, Numeric, Preference
from botorch_skewgp.papers import BatchedMarginalLogLikelihood

X = torch.linspace(0, 1, 12, dtype=torch.float64).unsqueeze(-1)
LABELS = Binary([0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 0])


def value_of(mll):
    return evaluate(mll.train()).item()


def two_explanations():
    """Numbers that are either smooth with much noise, or rough with little: two maxima."""
    values = torch.sin(6 * X.squeeze(-1)) + 0.6 * torch.cos(80 * X.squeeze(-1))
    covar_module = ScaleKernel(RBFKernel(lengthscale_prior=LogNormalPrior(-2.0, 1.5)), LogNormalPrior(0.0, 1.0))
    covar_module.base_kernel.lengthscale = 0.02
    likelihood = NumericLikelihood(1e-3, noise_prior=LogNormalPrior(-2.0, 2.0))
    return SkewGP(X, Numeric(values), likelihood, covar_module)


def test_more_starts_find_the_better_maximum():
    values = [value_of(fit_skew_gp(two_explanations(), num_restarts=n)) for n in (1, 6)]
    assert values[1] > values[0] + 0.5


def test_a_rate_of_slips_leaves_zero():
    """From a rate near zero a fit finds what it finds from the usual start."""
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(80, 1, dtype=torch.float64, generator=generator).sort(dim=0).values
    labels = (points.squeeze(-1) > 0.5).long()
    labels[[5, 20, 60, 75]] = 1 - labels[[5, 20, 60, 75]]
    values = []
    for rate in (0.02, 1e-6):
        slipping = ProbitLikelihood(slip=rate, learn_slip=True)
        likelihood = MixedLikelihood(slipping, PreferenceLikelihood())
        values.append(value_of(fit_skew_gp(SkewGP(points, [Binary(labels), Preference([[60, 3]])], likelihood))))
        assert slipping.slip > 0.02
    assert values[1] == pytest.approx(values[0], abs=1e-3)


def test_one_start_is_a_plain_fit_and_all_repeat():
    fits = [fit_skew_gp(SkewGP(X, LABELS), num_restarts=n, seed=3) for n in (1, 2, 2)]
    assert not any(mll.training for mll in fits)
    states = [mll.model.state_dict() for mll in fits]
    assert all(torch.equal(states[1][name], states[2][name]) for name in states[1])
    assert value_of(fits[1]) >= value_of(fits[0])


def test_fixed_hyperparameters_and_the_global_generator_stay_where_they_are():
    model, before = SkewGP(X, LABELS), torch.get_rng_state()
    model.covar_module.outputscale = 3.0
    model.covar_module.raw_outputscale.requires_grad_(False)
    fit_skew_gp(model, num_restarts=4)
    assert model.covar_module.outputscale.item() == pytest.approx(3.0)
    assert torch.equal(torch.get_rng_state(), before)


def test_any_objective_will_do():
    model = SkewGP(X, LABELS)
    mll = BatchedMarginalLogLikelihood(model.likelihood, model, batch_size=4)
    before = value_of(mll)
    assert fit_skew_gp(mll, optimizer_kwargs={"options": {"maxiter": 10}}) is mll
    assert value_of(mll) > before


def test_refusals():
    with pytest.raises(InputDataError, match="num_restarts must be an integer of at least 1"):
        fit_skew_gp(SkewGP(X, LABELS), num_restarts=0)

    class Failing(SkewGPMarginalLogLikelihood):
        def forward(self, *args, **kwargs):
            raise NotPSDError("not this one")

    model = SkewGP(X, LABELS)
    with pytest.raises(ModelFittingError, match="No start could be fitted"):
        fit_skew_gp(Failing(model.likelihood, model))


PRIOR = GammaPrior(2.0, 1.0)
MODULES = {
    "numbers": lambda: NumericLikelihood(),
    "labels": lambda: ProbitLikelihood(learn_noise=True, noise_prior=PRIOR),
    "grades": lambda: OrdinalLikelihood(4, learn_noise=True, noise_prior=PRIOR, gap_prior=PRIOR),
    "validity": lambda: ValidityLikelihood(
        learn_threshold=True, learn_noise=True, noise_prior=PRIOR, threshold_prior=NormalPrior(0.0, 1.0)
    ),
    "duels": lambda: PreferenceLikelihood(learn_noise=True, noise_prior=PRIOR, learn_tie_width=True),
    "label preferences": lambda: LabelPreferenceLikelihood(3, learn_noise=True, noise_prior=PRIOR),
    "mixed": lambda: MixedLikelihood(
        NumericLikelihood(), PreferenceLikelihood(learn_noise=True, noise_prior=PRIOR, learn_tie_width=True)
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_priors_of_every_module_can_be_drawn(name, generator):
    """Each value with a prior moves, and is what the prior drew."""
    observations = LabelPreference([[0, 1], [2, 1]], 3) if name == "label preferences" else None
    model = SkewGP(X, observations, MODULES[name]())
    before = {n: closure(module).clone() for n, module, _, closure, _ in model.named_priors()}
    assert len(before) >= 3  # the kernel's two and the likelihood's
    with torch.random.fork_rng():
        torch.manual_seed(5)
        sample_all_priors(model)
    for n, module, prior, closure, _ in model.named_priors():
        value = closure(module)
        assert (value != before[n]).all(), n
        assert prior.log_prob(value).isfinite().all(), n
