"""Warpings: increasing maps from an outcome to the scale on which it is a Gaussian process, with learnable shapes.

`base` is the interface, and `maps` are families. `parameters` gives modules one value for each of several nodes.
"""

from botorch_skewgp.warpings.base import Warping
from botorch_skewgp.warpings.maps import Affine, Arcsinh, BoxCox, Composition, SinhArcsinh

__all__ = ["Affine", "Arcsinh", "BoxCox", "Composition", "SinhArcsinh", "Warping"]
