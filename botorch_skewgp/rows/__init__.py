"""`rows`, noisy linear functionals of the latent function in intervals, and each `reading` that makes them."""

from botorch_skewgp.rows.reading import FantasyRows, Reading
from botorch_skewgp.rows.rows import (
    ColumnLayout,
    DenseRows,
    Rows,
    first_of_equal,
    shared_noise_rows,
    slope_columns,
    slope_in,
)

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
]
