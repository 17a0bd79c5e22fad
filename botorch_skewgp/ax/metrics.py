"""Metrics of experiments that Ax runs by itself."""

from __future__ import annotations

from typing import Any

from ax.core.base_trial import BaseTrial
from ax.core.data import Data
from ax.core.metric import Metric, MetricFetchResult
from ax.utils.common.result import Ok


class ValidityMetric(Metric):
    """The metric of validity; there is nothing to fetch, since the statuses of trials tell it.

    Ax's orchestration refuses experiments with metrics that cannot be fetched at all.
    """

    def fetch_trial_data(self, trial: BaseTrial, **kwargs: Any) -> MetricFetchResult:
        """No data.

        Args:
            trial: A trial.
            kwargs: Ignored.
        """
        return Ok(value=Data())
