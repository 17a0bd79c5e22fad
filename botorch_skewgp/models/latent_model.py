r"""The latent function given data: snapshots with draws, and the posterior in latent units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from typing import Any, Self

import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from gpytorch.distributions import MultivariateNormal
from torch import Tensor

from botorch_skewgp.models.panel import code_of, with_code
from botorch_skewgp.models.prior_model import PriorModel
from botorch_skewgp.models.snapshot import FantasyLevel, Snapshot
from botorch_skewgp.models.state import ModelState
from botorch_skewgp.posteriors import RepresenterMixture, SkewGPPosterior
from botorch_skewgp.truncated.draws import Draws


class LatentModel(PriorModel):
    r"""Base class of `SkewGP`: the posterior of the latent function.

    In training mode a call returns the prior, in evaluation mode the posterior, and `train_inputs` are transformed. The
    methods of the posterior use a `Snapshot` in either mode, so that one thread may call them while another fits.
    """

    _snapshot: Snapshot | None = None
    _fantasies: tuple[FantasyLevel, ...] = ()

    @property
    def batch_shape(self) -> torch.Size:
        """The batch shape of the fantasies; empty without fantasies."""
        return self._fantasies[-1].mixture.weights.shape[:-2] if self._fantasies else torch.Size()

    def _clear_cache(self) -> None:
        self._snapshot = None

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Self:
        before = self._points
        super()._apply(fn, *args, **kwargs)
        if self._points is not before:
            self._fantasies = tuple(level.apply(fn) for level in self._fantasies)
        return self

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot of the present model; a model of fantasies keeps the one it was made from."""
        snapshot = self._snapshot
        if snapshot is None or not (self._fantasies or snapshot.state.is_of(self, *self._settings)):
            frozen = copy(self)  # with modules of its own; data, which a model never writes into, are shared
            frozen.__dict__["_modules"] = deepcopy(self._modules)
            frozen._snapshot, frozen._fantasies = None, ()
            frozen.requires_grad_(False)
            frozen.restore_inputs()
            self._snapshot = snapshot = Snapshot(frozen.eval(), ModelState.of(self, *self._settings))
        return snapshot

    @property
    def _settings(self) -> tuple[Any, ...]:
        """What the posterior depends on beside modules."""
        return self._points, self._observations, self._outcome_scale, self.draw_settings, self.approximation

    def of_judge(self, code: int) -> Self:
        """A model of one judge's utility, which shares all modules with this one."""
        self.snapshot  # noqa: B018 - which both then share
        new = copy(self)
        new._judge = code
        return new

    def __call__(self, X: Tensor, *args: Any, **kwargs: Any) -> MultivariateNormal | SkewGPPosterior:
        r"""The prior in training mode; the posterior at (already transformed) inputs in evaluation mode."""
        if self.training:
            return super().__call__(X, *args, **kwargs)
        return self._posterior_at(X, self.snapshot)

    @property
    def draws(self) -> Draws:
        """The draws of the interval rows of the posterior, with their diagnostics; made on first use."""
        return self.snapshot.draws

    def latent_posterior(
        self, X: Tensor, judges: Sequence[int | str | None] | None = None, crossed: bool = False
    ) -> SkewGPPosterior:
        r"""The posterior of the latent function in its own units, those of the noise of labels and comparisons.

        Args:
            X: A `batch_shape x q x d` tensor, before input transforms.
            judges: The judge of each of the `q` points, as in `SkewGP.posterior`, for the joint posterior of several
                utilities; `None` (for one point or all) for the model's own utility.
            crossed: Whether every point has all judges instead, an output for each.

        Raises:
            InputDataError: If `X` is not a tensor of single or double precision, a judge gave no answers, or the
                number of judges is not that of points.
            BotorchTensorDimensionError: If `X` has another number of dimensions or columns.
            UnsupportedError: If judges are given to a model without judges, with several latent functions, or of
                fantasies.
        """
        X, now = self.checked_query(X), self.snapshot
        inputs = now.inputs_at(X, self.judge_code)
        if judges is None:
            return self._posterior_at(inputs, now)
        if self._panel is None:
            raise UnsupportedError(
                "Joint utilities of judges need a model with judges; name them with judge= in observations."
            )
        if not isinstance(judges, Sequence | Tensor) or not (crossed or len(judges) == X.shape[-2]):
            raise InputDataError(f"judges must name one for each of the {X.shape[-2]} points; got {judges!r}.")
        if self._num_outputs > 1 or self._fantasies:
            raise UnsupportedError(
                "Joint utilities of judges need a model of data with one latent function, without fantasies."
            )
        codes = [self._judge if judge is None else code_of(judge, self.judges) for judge in judges]
        if crossed:
            inputs = torch.stack([with_code(inputs[..., :-1], code) for code in codes], dim=-2).flatten(-3, -2)
            return now.posterior_at(inputs, codes, len(codes))
        column = inputs.new_tensor(codes).unsqueeze(-1).expand(*inputs.shape[:-1], 1)
        return now.posterior_at(torch.cat([inputs[..., :-1], column], dim=-1), codes)

    def posterior_of_mixture(self, X: Tensor, mixture: RepresenterMixture) -> SkewGPPosterior:
        """The posterior of the latent function in its own units, from a given mixture instead of the model's draws."""
        X = self.transform_inputs(self.checked_query(X))
        X = X if self._panel is None else with_code(X, self._judge)
        prior = self.latent_prior(self.train_inputs[0].double())
        return SkewGPPosterior(
            prior.mean_at(X), [prior.cross_covariance(X.double())], prior.covariance_at(X), mixture, self._num_outputs
        )

    def _posterior_at(self, X: Tensor, now: Snapshot) -> SkewGPPosterior:
        """The posterior at transformed inputs. Raises `BotorchTensorDimensionError`."""
        dim = now.model.train_inputs[0].shape[-1]
        if self._panel is not None and X.shape[-1] == dim:
            X = with_code(X, self._judge)
        if X.shape[-1] != dim + (self._panel is not None):
            raise BotorchTensorDimensionError(
                f"After input transforms X has {X.shape[-1]} columns, and train_X {dim}; transform both alike, or give "
                "train_X the columns that a transform appends to queries alone."
            )
        return now.posterior_at(X, (self._judge,), self._num_outputs, self._fantasies)
