"""Trajectories in torch (`eager`), and compiled for CPUs: reflected at bounds (`numba_trajectories`), and through walls
of finite height (`numba_refraction`).
"""
