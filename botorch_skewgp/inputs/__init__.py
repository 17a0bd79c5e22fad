"""Inputs of models and functions: `points` and bounds, `columns` by number or name, `transforms`."""
