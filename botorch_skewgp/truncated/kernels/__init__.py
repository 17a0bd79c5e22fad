"""Compiled kernels of the samplers; each file is imported only where its compiler is installed and asked for."""

from __future__ import annotations

from importlib.util import find_spec

import torch

KERNELS = ("auto", "eager", "numba", "triton")


def choose_kernel(name: str, device: torch.device) -> str:
    r"""The kernel that `name` stands for on `device`.

    Args:
        name: "eager", "numba", "triton", or "auto": numba on CPU and triton on CUDA where they are installed, and
            eager torch elsewhere.
        device: Where the tensors are.

    Raises:
        ImportError: If a kernel that was asked for by name is not installed.
        ValueError: If there is no kernel of this name, or it does not run on this device.
    """
    if name not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(KERNELS)}; got {name!r}.")
    if name == "eager":
        return name
    if name == "auto":
        for kernel, kind in (("numba", "cpu"), ("triton", "cuda")):
            if device.type == kind and find_spec(kernel) is not None:
                return kernel
        return "eager"
    if find_spec(name) is None:
        raise ImportError(f"kernel={name!r} needs {name}: pip install botorch_skewgp[fast]")
    needed = "cpu" if name == "numba" else "cuda"
    if device.type != needed:
        raise ValueError(f"kernel={name!r} runs on {needed}, the distribution is on {device.type}; use kernel='auto'.")
    return name
