"""Ax's transforms for numbers only."""

from __future__ import annotations

from typing import Any

from ax.adapter.base import Adapter
from ax.adapter.transforms.base import Transform
from ax.adapter.transforms.winsorize import Winsorize
from ax.core.data_utils import ExperimentData
from ax.core.search_space import SearchSpace

from botorch_skewgp.ax.internals import optimization_config_of


class WinsorizeObjective(Winsorize):
    """Ax's `Winsorize` for the numbers of a single objective, which cuts extremely bad ones. Labels, other metrics, and
    objectives with comparisons alone are not changed.
    """

    requires_data_for_initialization: bool = False

    def __init__(
        self,
        search_space: SearchSpace | None = None,
        experiment_data: ExperimentData | None = None,
        adapter: Adapter | None = None,
        config: dict[str, Any] | None = None,
    ) -> None:
        numbers = None if experiment_data is None or adapter is None else _of_objective(experiment_data, adapter)
        if numbers is None:
            Transform.__init__(self, search_space, experiment_data, adapter, config)
            self.cutoffs = {}
        else:
            super().__init__(search_space, numbers, adapter, config)


def _of_objective(data: ExperimentData, adapter: Adapter) -> ExperimentData | None:
    """The column of the objective, if there is one objective and it has numbers."""
    config = optimization_config_of(adapter)
    if config is None or config.is_moo_problem or len(config.objective.metric_signatures) != 1:
        return None
    (name,) = config.objective.metric_signatures
    observed = data.observation_data
    if ("mean", name) not in observed.columns or name in getattr(adapter, "labels", ()):
        return None
    if not observed["mean", name].notna().any():
        return None
    return ExperimentData(arm_data=data.arm_data, observation_data=observed[[("mean", name), ("sem", name)]])
