"""The model that Ax builds: metrics that are minimised, and probabilities of labels."""

from dataclasses import replace

import pytest
import torch
from ax.adapter.registry import Generators
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generators.torch.botorch_modular.surrogate import SurrogateSpec
from ax.generators.torch.botorch_modular.utils import ModelConfig, fit_botorch_model
from ax_cases import SMALL_SEARCH, new_client, next_trial, node_of
from botorch.acquisition.objective import ExpectationPosteriorTransform, ScalarizedPosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.get_sampler import get_sampler
from gpytorch.mlls import ExactMarginalLogLikelihood

from botorch_skewgp.ax.data import ObservationDataset
from botorch_skewgp.ax.models import AxSkewGP
from botorch_skewgp.ax.strategy import after_sobol
from botorch_skewgp.likelihoods import ProbitLikelihood
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import Binary, Censored, Numeric, Preference, Tie
from botorch_skewgp.posteriors import ProbabilityPosterior
from botorch_skewgp.truncated.draws import DrawSettings

X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
NEW = torch.tensor([[0.1], [0.35], [0.77], [1.2]], dtype=torch.float64)
VALUES = torch.tensor([3.0, 1.0, 7.0, 12.0], dtype=torch.float64)
NUMBERS = Numeric(VALUES, noise=0.2, index=[0, 1, 2, 3])
DUELS = Preference([[0, 4], [4, 3], [1, 2]])
LABELS = Binary([1, 1, 1, 0, 0, 0])


def build(*observations, minimize=False, kinds=None):
    data = ObservationDataset(
        X,
        torch.full((6, 1), torch.nan, dtype=torch.float64),
        feature_names=["x"],
        outcome_names=["loss"],
        observations=observations,
        kinds=kinds or [type(entry) for entry in observations],
        minimize=minimize,
    )
    return AxSkewGP(
        **AxSkewGP.construct_inputs(data),
        input_transform=Normalize(d=1),
        outcome_transform=Standardize(m=1),
        draw_settings=DrawSettings(num_draws=512),
    )


@pytest.mark.parametrize("told", [[NUMBERS], [DUELS, Tie([[0, 5]])], [NUMBERS, DUELS]])
def test_minimising_is_maximising_the_negative(told):
    turned = [replace(entry, values=-entry.values) if entry is NUMBERS else entry for entry in told]
    low, high = build(*told, minimize=True).posterior(NEW), build(*turned).posterior(NEW)
    torch.testing.assert_close(low.mean, -high.mean, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(low.variance, high.variance, rtol=1e-6, atol=0)
    torch.testing.assert_close(low.skewness, -high.skewness, rtol=1e-5, atol=1e-8)


def test_bounds_are_the_same_whichever_way_the_metric_goes():
    low, high = (build(NUMBERS, Censored([5.0], [torch.inf]), minimize=minimize) for minimize in (True, False))
    assert torch.equal(low.posterior(NEW).mean, high.posterior(NEW).mean)


@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.FewAnswersWarning")  # few labels are quick
@pytest.mark.parametrize("minimize", [False, True])
def test_labels_are_reported_as_probabilities(minimize):
    model = build(LABELS, minimize=minimize)
    assert isinstance(model.likelihood, ProbitLikelihood)
    posterior = model.posterior(NEW)
    assert isinstance(posterior, ProbabilityPosterior)
    assert torch.allclose(posterior.mean.squeeze(-1), model.predictive(NEW).probs.reshape(-1), atol=1e-9)
    assert torch.equal(model.posterior(NEW, observation_noise=True).mean, posterior.mean)
    assert 1 > posterior.mean[0] > 0.5 > posterior.mean[3] > 0


def test_scalarised_probabilities():
    model = build(LABELS)
    plain = model.posterior(NEW)
    transform = ScalarizedPosteriorTransform(torch.tensor([-2.0], dtype=torch.float64), offset=0.5)
    posterior = model.posterior(NEW, posterior_transform=transform)
    assert torch.allclose(posterior.mean, 0.5 - 2 * plain.mean)
    assert torch.allclose(posterior.variance, 4 * plain.variance)
    sampler = get_sampler(plain, torch.Size([8]), seed=1)
    assert torch.allclose(get_sampler(posterior, torch.Size([8]), seed=1)(posterior), 0.5 - 2 * sampler(plain))
    with pytest.raises(UnsupportedError, match="ExpectationPosteriorTransform is not supported for the probability"):
        model.posterior(NEW, posterior_transform=ExpectationPosteriorTransform(n_w=2))


def test_parts_of_an_experiment_have_the_parameters_of_the_whole():
    """As in cross-validation: a part without comparisons takes the state of the model of all the data."""
    whole = build(NUMBERS, DUELS, Tie([[0, 5]]))
    part = build(Numeric(VALUES[:3], index=[0, 1, 2]), kinds=(Numeric, Preference, Tie))
    part.load_state_dict(whole.state_dict())
    assert part.posterior(NEW).mean.isfinite().all()


@pytest.mark.parametrize("mll_class", [ExactMarginalLogLikelihood, SkewGPMarginalLogLikelihood])
def test_fit(mll_class):
    model = build(NUMBERS, DUELS)

    def evidence():
        model.train()
        with torch.no_grad():
            return float(SkewGPMarginalLogLikelihood(model.likelihood, model)(model(X), model.train_targets))

    before = evidence()
    fit_botorch_model(model, mll_class=mll_class)
    assert evidence() > before + 1e-3


def test_as_the_model_class_of_stock_ax():
    surrogate = SurrogateSpec(model_configs=[ModelConfig(botorch_model_class=AxSkewGP, name="SkewGP")])
    spec = GeneratorSpec(
        generator_enum=Generators.BOTORCH_MODULAR,
        generator_kwargs={"surrogate_spec": surrogate},
        generator_gen_kwargs={"model_gen_options": SMALL_SEARCH},
    )
    client = new_client()
    client.set_generation_strategy(after_sobol("BO", spec, 3, 0))
    for _ in range(5):
        index, parameters = next_trial(client)
        client.complete_trial(index, {"loss": (parameters["x"] - 0.3) ** 2})
    assert node_of(client, index) == "BO"
    assert type(client._generation_strategy.adapter.generator.surrogate.model) is AxSkewGP
    assert abs(client.predict([{"x": 0.3}])[0]["loss"][0]) < 0.1
