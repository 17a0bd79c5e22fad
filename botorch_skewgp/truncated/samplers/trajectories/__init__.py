"""Trajectories that are reflected at bounds: in torch, and compiled for CPUs and CUDA."""
