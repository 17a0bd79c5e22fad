"""A generation strategy for Ax whose objective is a transformed process: numbers on an unknown scale."""

from __future__ import annotations

from typing import Any

from ax.adapter.registry import Generators
from ax.adapter.transforms.unit_x import UnitX
from ax.exceptions.core import UserInputError
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generators.torch.botorch_modular.surrogate import SurrogateSpec
from ax.generators.torch.botorch_modular.utils import ModelConfig, fit_botorch_model
from ax.storage.botorch_modular_registry import register_model
from gpytorch.mlls import MarginalLogLikelihood

from botorch_skewgp.ax.acquisition import SkewGPAcquisition
from botorch_skewgp.ax.internals import user_input_errors
from botorch_skewgp.ax.registry import TRANSFORMS as OF_ALL
from botorch_skewgp.ax.strategy import after_sobol
from botorch_skewgp.ax.transforms import PowerTransformObjective
from botorch_skewgp.observations.checks import as_count, as_seed
from botorch_skewgp.transformed import BayesianTransformedGP

MIN_BUDGET = 4  # numbers, for a variance to exist
# without transforms of outcomes: the warping is learned
TRANSFORMS = [entry for entry in OF_ALL if entry is not PowerTransformObjective]
TRANSFORMS.insert(-1, UnitX)


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
            "transforms": TRANSFORMS,
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
