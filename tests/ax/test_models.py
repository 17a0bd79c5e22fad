"""The model that Ax builds: metrics that are minimised, and probabilities of labels."""

import pytest

pytest.importorskip("ax")

import botorch
import torch
from ax.adapter.registry import Generators
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials
from ax.generators.torch.botorch_modular.surrogate import SurrogateSpec
from ax.generators.torch.botorch_modular.utils import ModelConfig, fit_botorch_model
from ax_cases import SMALL_SEARCH, new_client, next_trial, node_of
from botorch.acquisition.objective import ExpectationPosteriorTransform, ScalarizedPosteriorTransform
from botorch.exceptions.errors import UnsupportedError
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.get_sampler import get_sampler
from gpytorch.mlls import ExactMarginalLogLikelihood

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import LogProbabilityOfValidity, ValidityConstraint
from botorch_skewgp.ax.data import ObservationDataset
from botorch_skewgp.ax.models import AxSkewGP, likelihood_of_kinds
from botorch_skewgp.checking import leave_one_out
from botorch_skewgp.likelihoods import (
    MixedLikelihood,
    NumericLikelihood,
    OrdinalLikelihood,
    PreferenceLikelihood,
    ProbitLikelihood,
    ValidityLikelihood,
)
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.observations import AffineProbit, Binary, Censored, Numeric, Ordinal, Preference, Tie, Validity
from botorch_skewgp.posteriors import ProbabilityPosterior, SkewGPPosterior
from botorch_skewgp.truncated.draws import DrawSettings

X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
NEW = torch.tensor([[0.1], [0.35], [0.77], [1.2]], dtype=torch.float64)
VALUES = torch.tensor([3.0, 1.0, 7.0, 12.0], dtype=torch.float64)
SMALL = DrawSettings(num_draws=512)


def pieces(kinds, values, noise=None):
    every = {
        Numeric: Numeric(values, noise=noise, index=[0, 1, 2, 3]),
        Preference: Preference([[0, 4], [4, 3], [1, 2]]),
        Tie: Tie([[0, 5]]),
        Validity: Validity([1, 1, 1, 0, 0], index=[0, 1, 2, 4, 5]),
    }
    return [every[kind] for kind in kinds]


def dataset(kinds, minimize=False, values=VALUES, noise=None, observations=None):
    Y = torch.full((6, 1), torch.nan, dtype=torch.float64)
    if Numeric in kinds:
        Y[:4, 0] = values
    return ObservationDataset(
        X,
        Y,
        feature_names=["x"],
        outcome_names=["loss"],
        observations=pieces(kinds, values, noise) if observations is None else observations,
        kinds=kinds,
        minimize=minimize,
        probability=Binary in kinds,
    )


def build(data, **kwargs):
    inputs = AxSkewGP.construct_inputs(data)
    return AxSkewGP(
        **inputs, input_transform=Normalize(d=1), outcome_transform=Standardize(m=1), draw_settings=SMALL, **kwargs
    )


ALL = (Numeric, Preference, Tie, Validity)


@pytest.mark.parametrize(
    "kinds",
    [(Numeric,), (Preference,), (Preference, Tie), (Numeric, Preference, Tie), (Numeric, Validity), ALL],
    ids=lambda kinds: "-".join(kind.__name__ for kind in kinds),
)
@pytest.mark.parametrize("noise", [None, 0.2])
def test_minimising_is_maximising_the_negative(kinds, noise):
    low = build(dataset(kinds, minimize=True, noise=noise))
    high = build(dataset(kinds, minimize=False, values=-VALUES, noise=noise))
    low_posterior, high_posterior = low.posterior(NEW), high.posterior(NEW)
    assert isinstance(low_posterior, SkewGPPosterior)
    if Validity in kinds:  # rows below a threshold, with draws of their own, for rows above one
        error = 2**0.5 * high_posterior.variance.sqrt() / SMALL.num_draws**0.5
        assert ((low_posterior.mean + high_posterior.mean).abs() < 4.5 * error).all()
        assert torch.allclose(low_posterior.variance, high_posterior.variance, rtol=0.3)
        return
    assert torch.allclose(low_posterior.mean, -high_posterior.mean, rtol=1e-6, atol=1e-9)
    assert torch.allclose(low_posterior.variance, high_posterior.variance, rtol=1e-6)
    assert torch.allclose(low_posterior.skewness, -high_posterior.skewness, rtol=1e-5, atol=1e-8)
    noisy = low.posterior(NEW, observation_noise=True), high.posterior(NEW, observation_noise=True)
    assert torch.allclose(noisy[0].variance, noisy[1].variance, rtol=1e-6)
    assert (noisy[0].variance > low_posterior.variance).all()


@pytest.mark.parametrize(
    ("observations", "likelihood"),
    [
        (Numeric(VALUES, noise=0.1), lambda: None),
        (Censored([-torch.inf, 1.0, 2.0], [0.5, torch.inf, 4.0]), lambda: None),
        (Ordinal([0, 2, 1, 1], 3), lambda: OrdinalLikelihood(3, cutpoints=torch.tensor([-1.0, 2.0]), noise=0.2)),
        (Binary([1, 1, 0, 1]), lambda: None),
        (AffineProbit([[1.0, 1.0]], 0.0, [[0.1]]), lambda: None),
    ],
    ids=["numbers", "censored readings", "given cut-points", "labels", "affine"],
)
@pytest.mark.parametrize("anchored", [False, True])
def test_readings_are_the_same_whichever_way_the_metric_goes(observations, likelihood, anchored):
    data = [observations, Numeric(VALUES, noise=0.5)] if anchored else [observations]
    given = likelihood()
    if anchored and given is not None:
        given = MixedLikelihood(NumericLikelihood(), given)
    options = {"likelihood": given, "outcome_transform": Standardize(m=1) if anchored else None, "draw_settings": SMALL}
    with botorch.settings.validate_input_scaling(False):  # some are in units of their own
        plain, low = SkewGP(X, data, **options), AxSkewGP(X, data, minimize=True, **options)
    assert torch.equal(low.posterior(NEW).mean, plain.posterior(NEW).mean)
    assert torch.equal(low.posterior(NEW).skewness, plain.posterior(NEW).skewness)
    assert torch.equal(leave_one_out(low).log_predictive, leave_one_out(plain).log_predictive)


@pytest.mark.parametrize("kinds", [(Numeric,), (Preference,), ALL], ids=["numbers", "duels", "all"])
def test_leave_one_out_of_a_metric_that_is_minimised(kinds):
    low, high = build(dataset(kinds, minimize=True)), build(dataset(kinds, values=-VALUES))
    first, second = leave_one_out(low), leave_one_out(high)
    difference = (first.log_predictive - second.log_predictive).abs()
    error = (1 / first.effective_size + 1 / second.effective_size).sqrt()  # both draw afresh where rows turn round
    assert (difference < (4 * error if Validity in kinds else 1e-6)).all()


def test_new_observations_of_a_metric_that_is_minimised():
    low, high = build(dataset(ALL, minimize=True)), build(dataset(ALL, values=-VALUES))
    (number, duel, valid), (above, won, works) = (m.predictive(NEW[[0, 2]]).values() for m in (low, high))
    torch.testing.assert_close(number.mean, -above.mean, rtol=0, atol=0.5)
    torch.testing.assert_close(duel.probs, won.probs, rtol=0, atol=0.1)
    torch.testing.assert_close(valid.probs, works.probs, rtol=0, atol=0.1)
    assert duel.probs[0] > 0.7  # the lower point wins
    assert valid.probs[0] > valid.probs[1]


@pytest.mark.parametrize("tensors", [False, True])
def test_more_data_of_a_metric_that_is_minimised(tensors):
    low = build(dataset((Numeric, Preference), minimize=True))
    duel = torch.tensor([[0, 1]])
    point = NEW[[1, 2]]
    before = low.posterior(point).mean.diff(dim=0)
    after = low.condition_on_observations(point, duel.flip(-1) if tensors else Preference(duel.flip(-1)))
    assert after.posterior(point).mean.diff(dim=0) < before  # the second won, hence is lower
    numbers = low.condition_on_observations(point[:1], torch.tensor([[1.0]], dtype=torch.float64))
    assert (numbers.posterior(point[:1]).mean - 1.0).abs() < (low.posterior(point[:1]).mean - 1.0).abs()


def test_a_batch_of_duels_of_a_metric_that_is_minimised():
    low = build(dataset((Preference,), minimize=True))
    point = NEW[[1, 2]].expand(3, 2, 1)
    after = low.condition_on_observations(point, torch.tensor([[0, 1]]).expand(3, 1, 2))
    change = after.posterior(point).mean - low.posterior(point).mean
    assert (change[:, 0] < change[:, 1]).all()


def test_labels_of_a_metric_that_is_minimised_keep_their_probability():
    data = dataset((Binary,), minimize=True, observations=[Binary([1, 1, 1, 0, 0, 0])])
    mean = build(data).posterior(NEW).mean
    assert mean[0] > 0.5 > mean[3]


def test_numbers_are_in_units_of_the_metric_and_labels_are_untouched():
    data = dataset((Numeric, Validity), values=1e4 + 100 * VALUES)
    model = build(data)
    small = build(dataset((Numeric, Validity)))
    assert torch.allclose(model.posterior(NEW).mean, 1e4 + 100 * small.posterior(NEW).mean, rtol=1e-6)
    (validity,) = [entry for entry in model.observations if isinstance(entry, Validity)]
    assert validity.valid.tolist() == [1, 1, 1, 0, 0]


# Probabilities


def labels_model(labels=(1, 1, 1, 0, 0, 0)):
    return build(dataset((Binary,), observations=[Binary(labels)]))


@pytest.mark.filterwarnings("ignore::botorch_skewgp.exceptions.FewAnswersWarning")  # few labels are quick
def test_labels_are_reported_as_probabilities():
    model = labels_model()
    assert isinstance(model.likelihood, ProbitLikelihood)
    posterior = model.posterior(NEW)
    assert isinstance(posterior, ProbabilityPosterior)
    assert torch.allclose(posterior.mean.squeeze(-1), model.predictive(NEW).probs.reshape(-1), atol=1e-9)
    assert torch.equal(model.posterior(NEW, observation_noise=True).mean, posterior.mean)
    assert ((posterior.mean > 0) & (posterior.mean < 1)).all()
    assert posterior.mean[0] > 0.5 > posterior.mean[3]


def test_scalarised_probabilities():
    model = labels_model()
    plain = model.posterior(NEW)
    transform = ScalarizedPosteriorTransform(torch.tensor([-2.0], dtype=torch.float64), offset=0.5)
    posterior = model.posterior(NEW, posterior_transform=transform)
    assert torch.allclose(posterior.mean, 0.5 - 2 * plain.mean)
    assert torch.allclose(posterior.variance, 4 * plain.variance)
    sampler = get_sampler(plain, torch.Size([8]), seed=1)
    assert torch.allclose(get_sampler(posterior, torch.Size([8]), seed=1)(posterior), 0.5 - 2 * sampler(plain))


def test_other_transforms_of_probabilities_are_refused():
    with pytest.raises(UnsupportedError, match="ExpectationPosteriorTransform is not supported for the probability"):
        labels_model().posterior(NEW, posterior_transform=ExpectationPosteriorTransform(n_w=2))


# Likelihoods


@pytest.mark.parametrize(
    ("kinds", "classes"),
    [
        ((Numeric,), {NumericLikelihood}),
        ((Binary,), {ProbitLikelihood}),
        ((Preference,), {PreferenceLikelihood}),
        ((Tie,), {PreferenceLikelihood}),
        ((Numeric, Preference), {NumericLikelihood, PreferenceLikelihood}),
        ((Numeric, Validity), {NumericLikelihood, ValidityLikelihood}),
        (ALL, {NumericLikelihood, PreferenceLikelihood, ValidityLikelihood}),
    ],
    ids=["numbers", "labels", "duels", "ties", "numbers and duels", "numbers and validity", "all"],
)
def test_likelihood_of_kinds(kinds, classes):
    likelihood = likelihood_of_kinds(dataset(kinds, observations=[]))
    parts = likelihood.likelihoods if isinstance(likelihood, MixedLikelihood) else [likelihood]
    assert {type(part) for part in parts} == classes


def test_parts_of_an_experiment_have_the_parameters_of_the_whole():
    """As in cross-validation: a part without comparisons takes the state of the model of all the data."""
    whole = build(dataset(ALL))
    part = build(dataset(ALL, observations=[Numeric(VALUES[:3], index=[0, 1, 2])]))
    part.load_state_dict(whole.state_dict())
    assert part.posterior(NEW).mean.isfinite().all()


@pytest.mark.parametrize("minimize", [False, True])
def test_the_threshold_of_validity_starts_at_the_worst_number(minimize):
    likelihood = likelihood_of_kinds(dataset((Numeric, Validity), minimize=minimize))
    validity = likelihood.for_kind(Validity)
    assert validity.threshold.item() == (12.0 if minimize else 1.0)


# The fit


@pytest.mark.parametrize("mll_class", [ExactMarginalLogLikelihood, SkewGPMarginalLogLikelihood])
def test_fit(mll_class):
    model = build(dataset((Numeric, Preference)))

    def evidence():
        model.train()
        with torch.no_grad():
            return float(SkewGPMarginalLogLikelihood(model.likelihood, model)(model(X), model.train_targets))

    before = evidence()
    fit_botorch_model(model, mll_class=mll_class)
    assert evidence() > before + 1e-3


# In Ax without our adapter


@pytest.mark.parametrize("model_class", [SkewGP, AxSkewGP])
def test_as_the_model_class_of_stock_ax(model_class):
    config = ModelConfig(botorch_model_class=model_class, name="SkewGP")
    surrogate = SurrogateSpec(model_configs=[config])
    nodes = [
        GenerationNode(
            name="Sobol",
            generator_specs=[GeneratorSpec(generator_enum=Generators.SOBOL, generator_kwargs={"seed": 0})],
            transition_criteria=[MinTrials(threshold=3, transition_to="BO")],
        ),
        GenerationNode(
            name="BO",
            generator_specs=[
                GeneratorSpec(
                    generator_enum=Generators.BOTORCH_MODULAR,
                    generator_kwargs={"surrogate_spec": surrogate},
                    generator_gen_kwargs={"model_gen_options": SMALL_SEARCH},
                )
            ],
        ),
    ]
    client = new_client()
    client.set_generation_strategy(GenerationStrategy(name="stock", nodes=nodes))
    for _ in range(5):
        index, parameters = next_trial(client)
        client.complete_trial(index, {"loss": (parameters["x"] - 0.3) ** 2})
    assert node_of(client, index) == "BO"
    model = client._generation_strategy.adapter.generator.surrogate.model
    assert type(model) is model_class
    assert abs(client.predict([{"x": 0.3}])[0]["loss"][0]) < 0.1


def test_probability_of_validity_of_a_metric_that_is_minimised():
    low, high = (build(dataset((Numeric, Validity), **side)) for side in ({"minimize": True}, {"values": -VALUES}))
    for model in (low, high):
        probability = model.predictive(NEW)[Validity].probs.flatten()
        points = NEW.unsqueeze(-2)
        torch.testing.assert_close(LogProbabilityOfValidity(model)(points).exp(), probability)
        samples = model.posterior(points).rsample(torch.Size([4096]))
        torch.testing.assert_close(
            ValidityConstraint(model).probability(samples).mean(0).flatten(), probability, rtol=0, atol=0.05
        )
