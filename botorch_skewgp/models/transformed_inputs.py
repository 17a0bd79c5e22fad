r"""Training points before and after a model's input transform."""

from __future__ import annotations

import torch
from torch import Tensor


class TransformedInputsMixin:
    r"""BoTorch's hooks for input transforms, without their detour over new data, which would clear what is cached.

    For BoTorch models that hold their training points, as they were given, as `_points`. `train_inputs` are these in
    training mode, and transformed ones in evaluation mode.
    """

    _points: Tensor
    _original_train_inputs: Tensor | None

    def restore_inputs(self) -> None:
        """Let `train_inputs` be the points as they were given, whatever the mode; `train` and `eval` set them."""
        self.train_inputs, self._original_train_inputs, self._has_transformed_inputs = (self._points,), None, False

    def _set_transformed_inputs(self) -> None:
        """Transform the inputs when evaluation mode begins."""
        if hasattr(self, "input_transform") and not self._has_transformed_inputs:
            self._original_train_inputs = self._points
            with torch.no_grad():
                self.train_inputs = (self.input_transform.preprocess_transform(self._points),)
            self._has_transformed_inputs = True

    def _revert_to_original_inputs(self) -> None:
        """Go back to the points as they were given when training mode begins."""
        self.restore_inputs()
