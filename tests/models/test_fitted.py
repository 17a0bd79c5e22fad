"""Posteriors are computed from the model as it was when they were asked for, and asking changes nothing."""

import pickle
import threading
from copy import deepcopy

import pytest
import torch
from botorch.acquisition.logei import qLogExpectedImprovement
from botorch.exceptions.errors import UnsupportedError
from botorch.fit import fit_gpytorch_mll
from botorch.models.transforms import Normalize
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import MaternKernel, PolynomialKernel, RBFKernel, ScaleKernel

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition.search_domain import SearchDomain
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.models.state import ModelState
from botorch_skewgp.observations import Binary, Preference, Slope
from botorch_skewgp.papers import sun_parameters
from botorch_skewgp.truncated.draws import DrawSettings

SETTINGS = DrawSettings(num_draws=64, min_effective_size=1)
X = 4 * torch.rand(8, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(5)) - 1
TEST_X = torch.tensor([[0.3, 0.1], [2.5, -0.7]], dtype=torch.float64)
DUELS = Preference([[0, 1], [2, 1], [2, 3], [4, 5], [6, 7]])
PATIENCE = 120  # seconds after which a test that hangs fails


def model_of(observations=DUELS):
    return SkewGP(X, observations, input_transform=Normalize(2), draw_settings=SETTINGS)


def moments(model):
    posterior = model.posterior(TEST_X)
    return torch.cat([posterior.mean, posterior.variance]).detach()


def fitted_parameters(objective=SkewGPMarginalLogLikelihood, model=None):
    model = model_of() if model is None else model
    fit_gpytorch_mll(objective(model.likelihood, model), optimizer_kwargs={"options": {"maxiter": 8}})
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_reading_between_the_evaluations_of_a_fit():
    """At every evaluation what is read is of its hyperparameters, and the fit ends where it ends without readers."""
    read = []

    class Read(SkewGPMarginalLogLikelihood):
        def forward(self, *args, **kwargs):
            state = deepcopy(self.model.state_dict())
            read.append((state, moments(self.model), self.model.draws, self.model.predictive(TEST_X).probs))
            assert self.model.training
            return super().forward(*args, **kwargs)

    found, wanted = fitted_parameters(Read), fitted_parameters()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    assert len(read) > 5
    for state, values, _, probability in [read[0], read[3], read[-1]]:
        alone = model_of()
        alone.load_state_dict(state)
        assert torch.equal(values, moments(alone))
        assert torch.equal(probability, alone.predictive(TEST_X).probs)


def test_reading_all_the_time():
    """Readers that know nothing of the fit: nobody fails, and the fit ends where it would have ended alone."""
    wanted = fitted_parameters()
    model, done, errors = model_of(), threading.Event(), []

    def read():
        try:
            while not done.is_set():
                assert moments(model).isfinite().all()
                assert ((model.predictive(TEST_X).probs - 0.5).abs() <= 0.5).all()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        found = fitted_parameters(model=model)
    finally:
        done.set()
        for thread in threads:
            thread.join(PATIENCE)
    assert not errors
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


@pytest.mark.parametrize("training", [True, False])
def test_reading_leaves_the_mode_and_the_inputs(training):
    model = model_of().train(training)
    inputs, bounds = model.train_inputs[0], deepcopy(model.input_transform.state_dict())
    moments(model)
    assert model.draws.num_draws == 64
    model.predictive(10 * TEST_X)
    model.log_marginal_likelihood("ep")
    sun_parameters(model, TEST_X)
    model.condition_on_observations(TEST_X, Preference([[0, 1]]))
    assert model.training == training == model.input_transform.training
    assert model.train_inputs[0] is inputs
    assert all(torch.equal(value, bounds[name]) for name, value in model.input_transform.state_dict().items())


def test_mode_does_not_matter():
    assert torch.equal(moments(model_of().train()), moments(model_of().eval()))


def test_posterior_stays_what_it_was():
    """Although it computes its parts when they are asked for."""
    model = model_of()
    before = moments(model)
    posterior = model.posterior(TEST_X)
    model.covar_module.outputscale = 77.0
    model.covar_module.base_kernel.lengthscale = 0.1
    assert torch.equal(torch.cat([posterior.mean, posterior.variance]).detach(), before)
    assert not torch.equal(moments(model), before)


def test_a_snapshot_lasts_until_something_changes():
    model = model_of(Binary([1, 0, 1]))
    draws = model.draws
    for same in (lambda: model.posterior(TEST_X), lambda: model.to(X), lambda: model.predictive(TEST_X)):
        same()
        assert model.draws is draws

    def exchange():
        """A kernel of equal values."""
        old, model.covar_module = model.covar_module, ScaleKernel(RBFKernel(ard_num_dims=2)).to(X)
        model.covar_module.outputscale = old.outputscale.detach()
        model.covar_module.base_kernel.lengthscale = old.base_kernel.lengthscale.detach()

    changes = (
        lambda: model.train().eval(),
        lambda: setattr(model.covar_module, "outputscale", 3.0),
        exchange,
        lambda: setattr(model, "draw_settings", DrawSettings(num_draws=32, min_effective_size=1)),
        lambda: model.set_train_data(X + 0.1),
        lambda: model.set_train_data(targets=Binary([0, 0, 1])),
        lambda: model.load_state_dict(model_of(Binary([1, 0, 1])).state_dict(), strict=False),
    )
    for change in changes:
        change()
        assert model.draws is not draws
        draws = model.draws


def made_of_plain_settings():
    kernel = ScaleKernel(MaternKernel(nu=2.5)) + ScaleKernel(PolynomialKernel(power=1))
    duels, options = Preference([[0, 1], [2, 1], [3, 4], [5, 4]]), {"input_transform": Normalize(2)}
    return SkewGP(X.clone(), duels, covar_module=kernel.double(), approximation="ep", **options)


CHANGES = {
    "nu": lambda model: setattr(model.covar_module.kernels[0].base_kernel, "nu", 0.5),
    "power": lambda model: setattr(model.covar_module.kernels[1].base_kernel, "power", 2),
    "ties": lambda model: setattr(model.likelihood, "ties_allowed", True),
    "transform": lambda model: setattr(model.input_transform, "transform_on_eval", False),
    "a point": lambda model: model.datapoints[1].add_(0.5),
    "a duel": lambda model: model.observations[0].pairs[0].copy_(torch.tensor([1, 0])),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_posterior_follows_plain_attributes_and_data_changed_in_place(name):
    """As if the change had been made before the first posterior."""
    model, fresh = made_of_plain_settings(), made_of_plain_settings()
    before = moments(model)
    CHANGES[name](model)
    CHANGES[name](fresh)
    assert not torch.allclose(moments(fresh), before, atol=1e-3)  # or the test says nothing
    assert torch.equal(moments(model), moments(fresh))
    assert model.fitted().data is model.fitted().data


def test_the_approximation_of_a_model_may_change():
    model = model_of()
    exact = moments(model)
    model.approximation = "ep"
    assert model.posterior(TEST_X).mixture.num_draws == 1
    model.approximation = None
    assert torch.equal(moments(model), exact)


def test_posteriors_keep_no_graph_of_hyperparameters():
    posterior = model_of().posterior(TEST_X)
    assert not posterior.mean.requires_grad
    assert not posterior.covariance_matrix.requires_grad


class ScaledKernel(RBFKernel):
    """Its prior variance is an attribute that not every instance has."""

    factor = 1.0

    def forward(self, *args, **kwargs):
        return self.factor * super().forward(*args, **kwargs)


def test_a_posterior_follows_an_attribute_that_a_module_did_not_have():
    model, fresh = (
        SkewGP(X.clone(), DUELS, covar_module=ScaledKernel().double(), approximation="ep", input_transform=Normalize(2))
        for _ in range(2)
    )
    before = moments(model)
    for each in (model, fresh):
        assert "factor" not in vars(each.covar_module)
        each.covar_module.factor = 3.0
    assert not torch.allclose(moments(fresh), before, atol=1e-3)
    assert torch.equal(moments(model), moments(fresh))


# Models that keep what they were made with

SAMPLER = SobolQMCNormalSampler(torch.Size([3]), seed=1)
KEEPING = {
    "fantasies": lambda model: model.fantasize(TEST_X, SAMPLER),
    "fantasies of fantasies": lambda model: model.fantasize(TEST_X, SAMPLER).fantasize(TEST_X + 0.1, SAMPLER),
    "known draws": lambda model: model.condition_on_draws(TEST_X[:1])[0],
    "frozen": lambda model: model.frozen(),
    "a judge's": lambda model: model.frozen().for_judge(None),
}


def refit(model):
    model.covar_module.outputscale, model.covar_module.base_kernel.lengthscale = 3.0, 0.1


MODES = {
    "nothing": lambda kept: kept,
    "eval": lambda kept: kept.eval(),
    "train": lambda kept: kept.train(),
    "copied": deepcopy,
    "pickled": lambda kept: pickle.loads(pickle.dumps(kept)),
    "moved to where it is": lambda kept: kept.to(X),
    "there and back": lambda kept: kept.to(torch.float32).to(torch.float64),
}


@torch.no_grad()
@pytest.mark.parametrize("name", KEEPING)
def test_what_a_model_keeps_is_not_dropped(name):
    """The posterior stays what it was in all modes, though the model that it came from was fitted again."""
    model = model_of()
    kept = KEEPING[name](model)
    before, of_model = moments(kept), moments(model)
    changed = {}
    refit(model)
    for mode, change in MODES.items():
        changed[mode] = moments(change(deepcopy(kept)))
    moved = changed.pop("there and back")
    assert all(torch.equal(found, before) for found in changed.values())
    torch.testing.assert_close(moved, before, rtol=1e-3, atol=1e-3)
    assert torch.equal(moments(kept), before)
    weights = kept.posterior(TEST_X).mixture.levels[0].weights
    single = kept.to(torch.float32).posterior(TEST_X.float())
    assert torch.equal(single.mixture.levels[0].weights, weights)  # those that fantasies were made of, not new draws
    assert model.covar_module.outputscale.dtype == torch.float64
    assert not torch.allclose(moments(model), of_model, atol=1e-3)


REPLACED = {
    "set_train_data": lambda kept: kept.set_train_data(X.flip(0)),
    "load_state_dict": lambda kept: kept.load_state_dict(model_of().state_dict()),
    "choose_inducing_points": lambda kept: kept.choose_inducing_points(2),
    "draw_settings": lambda kept: setattr(kept, "draw_settings", DrawSettings(num_draws=64)),
}


@pytest.mark.parametrize("asked", REPLACED)
def test_what_a_model_keeps_is_not_replaced(asked):
    kept = model_of().fantasize(TEST_X, SAMPLER)
    before = moments(kept)
    with pytest.raises(UnsupportedError, match=f"{asked} would not change this model"):
        REPLACED[asked](kept)
    assert torch.equal(moments(kept), before)
    assert torch.equal(kept.datapoints, X)


def test_a_frozen_model_takes_more_data_with_the_hyperparameters_that_it_keeps():
    model = model_of()
    frozen = model.frozen()
    before = moments(model.condition_on_observations(TEST_X, Preference([[0, 1]])))
    refit(model)
    assert torch.equal(moments(frozen.condition_on_observations(TEST_X, Preference([[0, 1]]))), before)


def test_a_first_posterior_in_inference_mode_leaves_gradients_to_later_ones():
    model, single = (model_of().to(dtype) for dtype in (torch.float64, torch.float32))
    for each in (model, single):
        at = TEST_X.to(each.datapoints)
        with torch.inference_mode():
            first = each.posterior(at)
            mean, _ = first.mean, (first.variance, first.rsample(), each.predictive(at).probs)
        later = each.posterior(at.clone().requires_grad_())
        assert torch.equal(later.mean, mean)
        (later.rsample().sum() + later.mean.sum() + later.variance.sum()).backward()


def test_a_search_looks_for_changes_once(monkeypatch):
    """Not at each of its evaluations; and what is found is the same."""
    model, looks = model_of().eval(), []
    acquisition = qLogExpectedImprovement(model, best_f=0.0, sampler=SAMPLER)
    domain = SearchDomain.build(model, torch.stack([X.amin(0), X.amax(0)]))
    is_of = ModelState.is_of

    def counted(*args):
        looks.append(args)
        return is_of(*args)

    monkeypatch.setattr(ModelState, "is_of", counted)
    domain.optimize(acquisition, 1, num_restarts=2, raw_samples=8)
    assert len(looks) <= 1
    assert acquisition.model is model


def test_fantasies_beside_slopes_can_be_copied():
    """Slopes are derivatives, whose graph is none of the fantasies'."""
    model = SkewGP(X, [Slope(0, [1, -1], index=[0, 1]), DUELS], approximation="ep", input_transform=Normalize(2))
    kept = model.condition_on_observations(TEST_X.unsqueeze(0), torch.tensor([[[0, 1]]]))
    for each in (kept, kept.condition_on_observations(TEST_X.unsqueeze(0) + 0.1, torch.tensor([[[1, 0]]]))):
        assert torch.equal(moments(deepcopy(each)), moments(each))
