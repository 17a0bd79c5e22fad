"""Metrics of experiments that Ax runs by itself."""

from __future__ import annotations

from typing import Any

from ax.core.base_trial import BaseTrial
from ax.core.data import Data
from ax.core.metric import Metric, MetricFetchResult
from ax.utils.common.result import Ok


class ValidityMetric(Metric):
    """The metric of validity, which follows from the statuses of trials.

    Fetching returns no data; Ax's orchestration refuses metrics that cannot be fetched.
    """

    def fetch_trial_data(self, trial: BaseTrial, **kwargs: Any) -> MetricFetchResult:
        """No data."""
        return Ok(value=Data())
