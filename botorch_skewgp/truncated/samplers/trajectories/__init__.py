"""Trajectories that are reflected or refracted at bounds: in torch (`eager`), and compiled for CPUs."""
