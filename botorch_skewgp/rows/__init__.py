"""Rows, noisy linear functionals of the latent function in intervals, and the readings that make them.

`reading` is what one observation measures, `rows` are its rows, and `shared_noise` those of one judgement of several
items. `columns` are the points and quantities that rows weigh; `fantasy_rows` are rows of new observations.
"""

from botorch_skewgp.rows.columns import ColumnLayout, first_of_equal, slope_columns, slope_in, value_of
from botorch_skewgp.rows.fantasy_rows import FantasyRows
from botorch_skewgp.rows.reading import Reading
from botorch_skewgp.rows.rows import DenseRows, Rows
from botorch_skewgp.rows.shared_noise import shared_noise_rows

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
