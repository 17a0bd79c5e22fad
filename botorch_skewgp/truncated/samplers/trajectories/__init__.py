"""Trajectories in torch (`eager`), and compiled for CPUs (`numba_trajectories`)."""
