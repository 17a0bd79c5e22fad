"""Warpings: increasing maps from an outcome to the scale on which it is a Gaussian process, with learnable shapes.

`base` is the interface; `affine`, `arcsinh`, `box_cox` and `sinh_arcsinh` are maps, and `composition` is one after
another. `parameters` gives modules one value for each of several nodes.
"""

from botorch_skewgp.warpings.affine import Affine
from botorch_skewgp.warpings.arcsinh import Arcsinh
from botorch_skewgp.warpings.base import Warping
from botorch_skewgp.warpings.box_cox import BoxCox
from botorch_skewgp.warpings.composition import Composition
from botorch_skewgp.warpings.sinh_arcsinh import SinhArcsinh

__all__ = ["Affine", "Arcsinh", "BoxCox", "Composition", "SinhArcsinh", "Warping"]
