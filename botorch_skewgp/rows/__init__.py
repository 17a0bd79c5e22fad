"""Rows, noisy linear functionals of the latent function in intervals, and the readings that make them.

`reading` is what one observation measures, with its rows in fantasies; `rows` are those of data, `columns` the points
and quantities that these weigh.
"""

from botorch_skewgp.rows.columns import ColumnLayout, first_of_equal, slope_columns, slope_in, value_of
from botorch_skewgp.rows.reading import FantasyRows, Reading
from botorch_skewgp.rows.rows import DenseRows, Rows, shared_noise_rows

__all__ = [
    "ColumnLayout",
    "DenseRows",
    "FantasyRows",
    "Reading",
    "Rows",
    "first_of_equal",
    "shared_noise_rows",
    "slope_columns",
    "slope_in",
    "value_of",
]
