"""Generation strategies for Ax's `Client`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from ax.adapter.registry import Generators
from ax.adapter.transforms.unit_x import UnitX
from ax.exceptions.core import UserInputError
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials, TransitionCriterion
from ax.generators.torch.botorch_modular.surrogate import SurrogateSpec
from ax.generators.torch.botorch_modular.utils import ModelConfig, fit_botorch_model
from ax.storage.botorch_modular_registry import register_model
from ax.utils.common.constants import Keys
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.input_constructors import ACQF_INPUT_CONSTRUCTOR_REGISTRY as _CONSTRUCTED
from botorch.models.transforms.outcome import Standardize
from gpytorch.mlls import MarginalLogLikelihood

from botorch_skewgp.ax.acquisition import PAIRS_BY_UTILITY, SkewGPAcquisition
from botorch_skewgp.ax.adapter import Failures
from botorch_skewgp.ax.data import ObjectiveIsKnown
from botorch_skewgp.ax.internals import metric_names_of, user_input_errors
from botorch_skewgp.ax.models import AxSkewGP
from botorch_skewgp.ax.registry import TRANSFORMS, SkewGPGenerators
from botorch_skewgp.ax.transforms import PowerTransformObjective
from botorch_skewgp.checks import as_count, as_probability, as_seed
from botorch_skewgp.mlls import SkewGPMarginalLogLikelihood
from botorch_skewgp.transformed import BayesianTransformedGP

MIN_BUDGET = 4  # numbers, for a variance to exist


def skewgp_generation_strategy(
    initialization_budget: int = 5,
    failures: Failures = "constraint",
    validity_metric: str = "validity",
    binary_metrics: Sequence[str] = (),
    feasibility_threshold: float = 0.5,
    acquisition: type[AcquisitionFunction] | None = None,
    acquisition_options: dict[str, Any] | None = None,
    torch_device: str | None = None,
    seed: int | None = 0,
) -> GenerationStrategy:
    r"""Sobol points first, then SkewGPs that learn from any mix of numbers of one or several objectives, failed or
    abandoned trials, labels of a metric, and comparisons (`attach_comparison`, `get_next_pair`). With a preference
    optimization config they learn from comparisons of outcomes (BOPE).

    Example:
        >>> client.configure_optimization(objective="-loss")
        >>> client.set_generation_strategy(skewgp_generation_strategy())

    Args:
        initialization_budget: The number of Sobol trials, failed or not; more as long as the objective has no data.
        failures: Meaning of a failed or abandoned trial. `"constraint"`: a separate latent function of validity,
            learned from the labels of `validity_metric` and from failures, is a constraint by whose probability the
            acquisition function is weighted. `"ignore"`: nothing, as in Ax. Of a trial that failed because it was
            extremely bad, record a bound by `attach_censored`.
        validity_metric: The metric of validity, tracked or in an outcome constraint, with values 0 and 1; may be left
            unreported. Predicted as a probability.
        binary_metrics: Further metrics with values 0 and 1.
        feasibility_threshold: The least probability of validity, unless an outcome constraint on `validity_metric` has
            another.
        acquisition: A BoTorch acquisition function class with an input constructor; by default Ax's choice, and for
            pairs of experiments without numbers the expected utility of the best option.
        acquisition_options: Arguments of the acquisition function.
        torch_device: The device of models and acquisition functions.
        seed: The seed of Sobol points and, for each trial anew, of the optimisation of the acquisition function, so
            that an experiment loaded in another process continues as it would have; `None` for random seeds.

    Raises:
        UserInputError: If an argument is of another kind or out of its range.
    """
    if failures not in ("constraint", "ignore"):
        raise UserInputError(f'failures must be "constraint" or "ignore"; got {failures!r}.')
    with user_input_errors():
        budget = as_count(initialization_budget, "initialization_budget", least=1)
        seed = None if seed is None else as_seed(seed)
        as_probability(feasibility_threshold, "feasibility_threshold")
    if not isinstance(validity_metric, str) or not validity_metric:
        raise UserInputError(f"validity_metric must be the name of a metric; got {validity_metric!r}.")
    labels = metric_names_of(binary_metrics, "binary_metrics")
    if acquisition_options and acquisition is None:
        raise UserInputError("acquisition_options need an acquisition.")
    if not isinstance(acquisition_options, Mapping | None):
        raise UserInputError(f"acquisition_options must be arguments by name; got {acquisition_options!r}.")
    if acquisition is not None and not (isinstance(acquisition, type) and acquisition in _CONSTRUCTED):
        raise UserInputError(
            f"Ax cannot construct a {getattr(acquisition, '__name__', acquisition)}. Give the class of an acquisition "
            "function that has an input constructor (botorch.acquisition.input_constructors.acqf_input_constructor)."
        )
    config = ModelConfig(
        botorch_model_class=AxSkewGP,
        mll_class=SkewGPMarginalLogLikelihood,
        outcome_transform_classes=[Standardize],
        name="SkewGP",
    )
    kwargs: dict[str, Any] = {
        "surrogate_spec": SurrogateSpec(
            model_configs=[config],
            metric_to_model_configs={Keys.PAIRWISE_PREFERENCE_QUERY.value: [config]},
            allow_batched_models=False,
        ),
        "failures": failures,
        "validity_metric": validity_metric,
        "binary_metrics": labels,
        "feasibility_threshold": feasibility_threshold,
        "acquisition_class": SkewGPAcquisition,
        "torch_device": None if torch_device is None else _device(torch_device),
        "seed": seed,
    }
    if acquisition is None:
        kwargs["acquisition_options"] = {PAIRS_BY_UTILITY: True}
    else:
        kwargs |= {"botorch_acqf_class": acquisition, "botorch_acqf_options": acquisition_options or {}}
    model = GeneratorSpec(generator_enum=SkewGPGenerators.SKEWGP, generator_kwargs=kwargs)
    return after_sobol("SkewGP", model, budget, seed, [ObjectiveIsKnown(transition_to="SkewGP")])


def after_sobol(
    name: str, model: GeneratorSpec, budget: int, seed: int | None, criteria: Sequence[TransitionCriterion] = ()
) -> GenerationStrategy:
    """A strategy of Sobol points and then a model, after some trials and further criteria."""
    enough = MinTrials(threshold=budget, transition_to=name, use_all_trials_in_exp=True)
    points = GeneratorSpec(generator_enum=Generators.SOBOL, generator_kwargs={"seed": seed})
    first, then = (
        GenerationNode(name=of, generator_specs=[spec], transition_criteria=when, should_deduplicate=True)
        for of, spec, when in (("Sobol", points, [enough, *criteria]), (name, model, None))
    )
    return GenerationStrategy(name=f"Sobol+{name}", nodes=[first, then])


def _device(name: str) -> torch.device:
    try:
        return torch.device(name)
    except (RuntimeError, TypeError):
        raise UserInputError(f"torch_device must be a device of torch, such as 'cuda'; got {name!r}.") from None


def transformed_generation_strategy(
    initialization_budget: int = 5, model_options: dict[str, Any] | None = None, seed: int | None = 0
) -> GenerationStrategy:
    r"""Sobol points first, then a `BayesianTransformedGP` of every metric.

    For objectives whose values spread over orders of magnitude, or in unknown units. Ax needs means and variances, so
    the models' prior keeps only warpings with finite ones, which are few after few trials.

    Example:
        >>> client.configure_optimization(objective="-loss")
        >>> client.set_generation_strategy(transformed_generation_strategy())

    Args:
        initialization_budget: The number of Sobol trials, at least 4.
        model_options: Further arguments of `BayesianTransformedGP`, plain values.
        seed: The seed of Sobol points; `None` for a random one.

    Raises:
        UserInputError: If the budget is too small, or an argument of another kind.
    """
    with user_input_errors():
        seed = None if seed is None else as_seed(seed)
        budget = as_count(initialization_budget, "initialization_budget", least=MIN_BUDGET)
    if not isinstance(model_options, dict | None):
        raise UserInputError(f"model_options must be a dictionary of arguments by name; got {model_options!r}.")
    config = ModelConfig(
        botorch_model_class=BayesianTransformedGP,
        model_options={"num_moments": 2} | (model_options or {}),
        input_transform_classes=None,
        name="BayesianTransformedGP",
    )
    model = GeneratorSpec(
        generator_enum=Generators.BOTORCH_MODULAR,
        generator_kwargs={
            "surrogate_spec": SurrogateSpec(model_configs=[config], allow_batched_models=False),
            # the warping is learned
            "transforms": [*(entry for entry in TRANSFORMS if entry is not PowerTransformObjective), UnitX],
            "acquisition_class": SkewGPAcquisition,
        },
    )
    return after_sobol("Transformed", model, budget, seed)


@fit_botorch_model.register(BayesianTransformedGP)
def fit_transformed_gp_for_ax(
    model: BayesianTransformedGP, mll_class: type[MarginalLogLikelihood], mll_options: dict[str, Any] | None = None
) -> None:
    """Compute the nodes of a transformed process; nothing is fitted, and the objective is not used."""
    model.log_evidence  # noqa: B018


register_model(BayesianTransformedGP)
