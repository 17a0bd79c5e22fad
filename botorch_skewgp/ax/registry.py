"""Registration of this package's classes with Ax, to build and to store them; importing this module runs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ax.adapter.registry import GeneratorRegistryBase, GeneratorSetup
from ax.adapter.transforms.base import Transform
from ax.adapter.transforms.choice_encode import ChoiceToNumericChoice
from ax.adapter.transforms.derelativize import Derelativize
from ax.adapter.transforms.log import Log
from ax.adapter.transforms.logit import Logit
from ax.adapter.transforms.one_hot import OneHot
from ax.adapter.transforms.remove_fixed import RemoveFixed
from ax.api.client import Client
from ax.core.optimization_config import PreferenceOptimizationConfig
from ax.exceptions.core import UserInputError
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generators.torch.botorch_modular.generator import BoTorchGenerator
from ax.storage import botorch_modular_registry
from ax.storage.json_store.encoders import metric_to_dict, transition_criterion_to_dict
from ax.storage.json_store.registry import CORE_DECODER_REGISTRY, CORE_ENCODER_REGISTRY
from ax.storage.metric_registry import CORE_METRIC_REGISTRY
from ax.storage.transform_registry import register_transform
from ax.storage.utils import stable_hash
from botorch.acquisition import AcquisitionFunction

from botorch_skewgp import acquisition, mlls
from botorch_skewgp.ax.acquisition import SkewGPAcquisition
from botorch_skewgp.ax.adapter import SkewGPAdapter
from botorch_skewgp.ax.data import ObjectiveIsKnown
from botorch_skewgp.ax.internals import ValidityMetric, experiment_of, generation_strategy_of
from botorch_skewgp.ax.models import AxSkewGP
from botorch_skewgp.ax.transforms import PowerTransformObjective
from botorch_skewgp.models import SkewGP

# without Ax's standardisation: models standardise numbers, and leave labels and comparisons alone
TRANSFORMS: list[type[Transform]] = [
    RemoveFixed,
    ChoiceToNumericChoice,
    OneHot,
    Log,
    Logit,
    Derelativize,
    PowerTransformObjective,
]


class SkewGPGenerators(GeneratorRegistryBase):
    """Ax's generators of this package."""

    SKEWGP = "SkewGP"

    @property
    def GENERATOR_KEY_TO_GENERATOR_SETUP(self) -> dict[str, GeneratorSetup]:
        """The setup behind each name."""
        return {
            "SkewGP": GeneratorSetup(
                adapter_class=SkewGPAdapter, generator_class=BoTorchGenerator, transforms=TRANSFORMS
            )
        }


def skewgp_spec_of(client: Client) -> GeneratorSpec:
    """The generator spec of SkewGPs in a client's strategy."""
    specs = [spec for node in generation_strategy_of(client).nodes_by_name.values() for spec in node.generator_specs]
    found = [spec for spec in specs if spec.generator_enum is SkewGPGenerators.SKEWGP]
    if not found:
        raise UserInputError(
            "The client's strategy has no SkewGP; call "
            "client.set_generation_strategy(skewgp_generation_strategy()) first."
        )
    return found[0]


def fitted_adapter(client: Client) -> SkewGPAdapter:
    """The adapter of a client's strategy, fitted to all data so far."""
    spec = skewgp_spec_of(client)
    spec.fit(experiment=experiment_of(client))
    adapter = spec.fitted_adapter
    assert isinstance(adapter, SkewGPAdapter)
    return adapter


def _preference_optimization_config(
    objective_thresholds: Sequence[Any] = (), **kwargs: Any
) -> PreferenceOptimizationConfig:
    """A config from Ax's storage, which writes thresholds that these configs do not take."""
    return PreferenceOptimizationConfig(**kwargs)


def _type_in_databases(entry: type) -> int:
    """The number of a metric's class in Ax's databases, by Ax's rule for classes without one."""
    return abs(stable_hash(entry.__name__)) % 10**5


def register() -> None:
    """Register classes with Ax's storage."""
    CORE_DECODER_REGISTRY["SkewGPGenerators"] = SkewGPGenerators
    CORE_DECODER_REGISTRY["ObjectiveIsKnown"] = ObjectiveIsKnown
    CORE_ENCODER_REGISTRY[ObjectiveIsKnown] = transition_criterion_to_dict
    CORE_DECODER_REGISTRY["PreferenceOptimizationConfig"] = _preference_optimization_config
    for model in (SkewGP, AxSkewGP):
        botorch_modular_registry.register_model(model)
    botorch_modular_registry.register_mll(mlls.SkewGPMarginalLogLikelihood)
    botorch_modular_registry.register_acquisition(SkewGPAcquisition)
    register_transform(PowerTransformObjective)
    CORE_METRIC_REGISTRY[ValidityMetric] = _type_in_databases(ValidityMetric)
    CORE_ENCODER_REGISTRY[ValidityMetric] = metric_to_dict
    CORE_DECODER_REGISTRY[ValidityMetric.__name__] = ValidityMetric
    for name in acquisition.__all__:
        entry = getattr(acquisition, name)
        if isinstance(entry, type) and issubclass(entry, AcquisitionFunction):
            botorch_modular_registry.register_acquisition_function(entry)


register()
