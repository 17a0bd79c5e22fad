"""Trajectories that are reflected at bounds: in torch (`eager`), and compiled for CPUs (`numba_trajectories`) and CUDA
(`triton_trajectories`); through walls of finite height in torch (`refractive`) and for CPUs (`numba_refraction`).
"""
