"""Ax's transforms for numbers only."""

from __future__ import annotations

from typing import Any

import numpy as np
from ax.adapter.base import Adapter
from ax.adapter.transforms.base import Transform
from ax.adapter.transforms.power_transform_y import PowerTransformY
from ax.core.data_utils import ExperimentData
from ax.core.search_space import SearchSpace
from numpy.typing import NDArray

from botorch_skewgp.ax.internals import optimization_config_of
from botorch_skewgp.hosts.outcomes import PowerTransform, fit_power_transform


class PowerTransformObjective(PowerTransformY):
    """Ax's `PowerTransformY` for the numbers of a single objective, by `fit_power_transform`, which cuts extremely bad
    ones and needs no clipping of predictions. Labels, other metrics, and objectives with comparisons alone are not
    changed.
    """

    requires_data_for_initialization: bool = False

    def __init__(
        self,
        search_space: SearchSpace | None = None,
        experiment_data: ExperimentData | None = None,
        adapter: Adapter | None = None,
        config: dict[str, Any] | None = None,
    ) -> None:
        """As Ax's transforms, whose space and configuration are not used."""
        Transform.__init__(self, search_space, experiment_data, adapter, config)
        self.clip_mean = False
        found = {} if experiment_data is None or adapter is None else _of_objective(experiment_data, adapter)
        self.metric_signatures = list(found)
        self.power_transforms: dict[str, Any] = found
        self.inv_bounds = dict.fromkeys(found, (-np.inf, np.inf))

    def transform_experiment_data(self, experiment_data: ExperimentData) -> ExperimentData:
        """The data on the scale of models; standard errors are those around numbers that are cut."""
        observed = experiment_data.observation_data
        for name, found in self.power_transforms.items():
            if ("mean", name) in observed.columns:
                observed["mean", name] = found.cut(observed["mean", name].to_numpy(dtype=float))
        return super().transform_experiment_data(experiment_data)

    @property
    def of_objective(self) -> PowerTransform:
        """The map of the objective's numbers."""
        return next(iter(self.power_transforms.values()), PowerTransform())

    def transform_bounds(self, metric: str, bounds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Lower and upper bounds of a metric, `2 x n`, on the scale of its model."""
        found = self.power_transforms.get(metric)
        return bounds if found is None else np.stack(found.bounds(*bounds))


def _of_objective(data: ExperimentData, adapter: Adapter) -> dict[str, PowerTransform]:
    """The map of the objective by its metric's name, if there is one objective and it has numbers."""
    config = optimization_config_of(adapter)
    if config is None or config.is_moo_problem or len(config.objective.metric_signatures) != 1:
        return {}
    (name,) = config.objective.metric_signatures
    observed = data.observation_data
    if ("mean", name) not in observed.columns or name in getattr(adapter, "labels", ()):
        return {}
    sign = -1.0 if config.objective.minimize else 1.0
    return {name: fit_power_transform(observed["mean", name].to_numpy(dtype=float), sign)}
