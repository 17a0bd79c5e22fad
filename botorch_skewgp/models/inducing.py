r"""Inducing points: rows over many points, written as rows over few.

With `u` the columns of few points `Z`, a row `w^T f` is the sum of its mean given `u`, `w^T K_xz K_zz^-1 u`, and a
residual that is noise of its row: residuals of different judgements are taken as independent. For numbers this is the
fully independent training conditional ([Snelson2006sparse]_, [QuinoneroCandela2005unifying]_), for labels its probit
form ([NaishGuzman2007generalized]_). Predictions keep the exact prior at new points.

.. [Snelson2006sparse] E. Snelson, Z. Ghahramani. Sparse Gaussian processes using pseudo-inputs. NeurIPS 18, 2006.
.. [QuinoneroCandela2005unifying] Quinonero-Candela, Rasmussen. Journal of Machine Learning Research 6, 2005.
.. [NaishGuzman2007generalized] A. Naish-Guzman, S. Holden. The generalized FITC approximation. NeurIPS 20, 2007.
.. [Burt2020convergence] Burt, Rasmussen, van der Wilk. Journal of Machine Learning Research 21, 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models.utils.inducing_point_allocators import GreedyVarianceReduction
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.module import Module
from torch import Tensor
from torch.nn.functional import pad

from botorch_skewgp.kernels.judges import JudgeKernel
from botorch_skewgp.models.latent_prior import LatentPrior, ResidualColumns
from botorch_skewgp.models.panel import SHARED
from botorch_skewgp.models.row_model import RowModel
from botorch_skewgp.rows import ColumnLayout, DenseRows, Rows, first_of_equal
from botorch_skewgp.truncated.derivatives import squared_lengths
from botorch_skewgp.truncated.factorization import cholesky_with_relative_jitter

MAX_CANDIDATES = 4096  # training points to choose from; their covariance is built
SHARE = 1e-9  # of a row's own noise that is added to the noise it shares with its block
NO_RESIDUAL = 1e-9  # of a row's variance: rounding
_DENSE_BEYOND = 8  # columns per row, beyond which the covariance of all points is computed


class InducingPoints(Module):
    """The inducing points of a model, `M x d`, in the units of its training points."""

    def __init__(self, points: Tensor, learn: bool) -> None:
        super().__init__()
        self.register_parameter("points", torch.nn.Parameter(points.detach().clone(), requires_grad=learn))


def check_given_points(inducing_points: Tensor | int, train_X: Tensor) -> None:
    """Raise `InputDataError` unless inducing points, `M x d`, fit a model's points, `n x d`."""
    n, d = train_X.shape
    if not isinstance(inducing_points, Tensor):
        is_number = isinstance(inducing_points, int) and not isinstance(inducing_points, bool)
        if not is_number or not 1 <= inducing_points <= n:
            raise InputDataError(
                f"inducing_points must be an M x {d} tensor, or an integer from 1 to {n}, to choose so many training "
                f"points; got {inducing_points!r}. Leave it out for the exact model."
            )
        return
    Z = inducing_points
    if Z.dtype not in (torch.float32, torch.float64) or Z.ndim != 2 or Z.shape[-1] != d or Z.shape[0] == 0:
        raise InputDataError(
            f"inducing_points must be a floating point M x {d} tensor, with a column for each input; got "
            f"{Z.dtype} of shape {tuple(Z.shape)}."
        )
    if not Z.isfinite().all():
        raise InputDataError("inducing_points contain NaN or infinite values.")
    _, inverse, counts = Z.unique(dim=0, return_inverse=True, return_counts=True)
    if bool((counts > 1).any()):
        twice = (counts[inverse] > 1).nonzero().squeeze(-1)[:6].tolist()
        raise InputDataError(f"inducing_points repeat equal points in rows {twice}; give each point once.")


@torch.no_grad()
def choose_inducing_points(train_X: Tensor, transformed: Tensor, covar_module: Kernel, num_points: int) -> Tensor:
    """BoTorch's greedy variance reduction ([Burt2020convergence]_) among at most `MAX_CANDIDATES` points, `n x d`."""
    distinct = first_of_equal(transformed).unique()
    size = min(len(distinct), max(MAX_CANDIDATES, num_points))
    spaced = torch.linspace(0, len(distinct) - 1, size, dtype=torch.float64, device=distinct.device).round().long()
    which = distinct[spaced]
    candidates = transformed[which].double()
    found = GreedyVarianceReduction().allocate_inducing_points(
        inputs=candidates, covar_module=covar_module, num_inducing=min(num_points, size), input_batch_shape=torch.Size()
    )
    chosen = (candidates == found.unsqueeze(-2)).all(-1).long().argmax(-1)
    rest = torch.ones(size, dtype=torch.bool, device=chosen.device).index_fill(0, chosen, False).nonzero().squeeze(-1)
    missing = min(num_points, size) - len(chosen)
    more = rest[torch.linspace(0, max(len(rest) - 1, 0), missing, device=rest.device).round().long()]
    return train_X[which[torch.cat([chosen, more])]]


@dataclass(frozen=True, eq=False)
class WhiteRows:
    """Rows over the white coordinates `L^-1 (u - mean)` of the columns `u` of a model with inducing points.

    Args:
        root: The lower Cholesky factor `L` of the covariance of these columns.
        rows: The rows over white coordinates, with their residuals as noise.
        data_rows: The same rows over the columns of the training points.
        layout: The order of the columns of the training points.
        prior: The prior over the columns `u`.
    """

    root: Tensor
    rows: DenseRows
    data_rows: Rows
    layout: ColumnLayout
    prior: LatentPrior

    def for_judges(self, codes: Sequence[int] = ()) -> tuple[RowModel, ResidualColumns | None]:
        """The rows under their prior, with residuals of some judges' blocks as columns. Raises `UnsupportedError`."""
        rows, judge = self.rows, self.rows.judge
        theirs = torch.zeros_like(rows.label, dtype=torch.bool)
        if judge is not None:
            theirs = torch.isin(judge, torch.tensor(sorted({*codes} - {SHARED}), device=judge.device))
        blocks = rows.label[theirs].unique()  # with the rows of others who share noise
        if not len(blocks):
            return _under_standard_normal(self.root, rows), None
        if self.prior.num_outputs > 1:
            raise UnsupportedError("Judges of several latent functions need a model without inducing points.")
        assert rows.noise_root is not None  # each judge's rows are in one block
        each = [(rows.label == block).nonzero().squeeze(-1) for block in blocks]
        roots = []
        for mine in each:
            shared = rows.noise_root[mine]
            covariance = shared @ shared.mT + torch.diag(SHARE * rows.noise[mine])
            roots.append(cholesky_with_relative_jitter(covariance))
        own, which = torch.block_diag(*roots), torch.cat(each)
        further = rows.coefficient.new_zeros(rows.num_rows, len(which)).index_copy(0, which, own)
        extended = DenseRows.of_weight(
            torch.cat([rows.coefficient, further], dim=-1),
            rows,
            noise=rows.noise.index_add(0, which, -SHARE * rows.noise[which]),
            noise_root=rows.noise_root.index_fill(0, which, 0.0),
        )
        return _under_standard_normal(torch.block_diag(self.root, own), extended), self._residuals(which)

    def _residuals(self, which: Tensor) -> ResidualColumns:
        """What some rows measure of their judges' own parts."""
        columns, position = self.data_rows.index[which].unique(return_inverse=True)
        weight = self.root.new_zeros(len(which), len(columns))
        weight = weight.scatter_add(-1, position, self.data_rows.coefficient[which])
        point, dims = self.layout.places(columns)
        return ResidualColumns(self.prior.training_points[point], dims, weight)


def _under_standard_normal(root: Tensor, rows: DenseRows) -> RowModel:
    """Rows over white coordinates of columns with a covariance of the given root."""
    eye = torch.eye(root.shape[-1], dtype=root.dtype, device=root.device)
    return RowModel(mean=root.new_zeros(len(root)), covariance=eye, rows=rows, column_root=root)


def over_white_columns(rows: Rows, layout: ColumnLayout, prior: LatentPrior, columns: MultivariateNormal) -> WhiteRows:
    """Rows over the standard normal `L^-1 (u - mean)` of the inducing points' columns `u`, with residuals."""
    L = cholesky_with_relative_jitter(columns.lazy_covariance_matrix.to_dense().double())
    white, mean = _columns_of_data(layout, prior, L, columns.mean.double())
    weight = rows.times(white)
    bias = rows.bias + rows.times(mean.unsqueeze(-1)).squeeze(-1)
    features = _own_features(layout, prior)
    if features is None:
        noisy = _with_residuals(rows, weight, layout, prior, by_judge=True)
    else:  # residuals are of what all share alone
        features = rows.times(features)
        explained = torch.cat([weight, features], dim=-1)
        noisy = rows
        if not _explain(explained, rows, layout, prior):
            noisy = _with_residuals(rows, explained, layout, prior, by_judge=False)
        root, label = _shared_by_judges(noisy, features)
        noisy = replace(noisy, noise_root=root, block=label)
    return WhiteRows(L, DenseRows.of_weight(weight, noisy, bias=bias), rows, layout, prior)


def _columns_of_data(layout: ColumnLayout, prior: LatentPrior, L: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    """The columns of the training points over white coordinates, `L^-1 Cov(u, column)`, and their means."""
    X, first = prior.training_points, len(prior.points) * prior.num_outputs
    end = first + layout.num_pseudo_points
    crosses = [prior.cross_covariance(X)]
    means = [prior.mean_at(X).double(), mean[first:end]]
    if prior.by_judge and layout.has_slopes:  # judges' own slopes; the columns are slopes of what judges share
        S = X[layout.slope_points.to(X.device)]
        crosses.append(prior.cross_covariance(S, layout.slope_dims))
        means.append(prior.slope_means(S, layout.slope_dims).double())
    else:
        means.append(mean[end:])
    whites = [torch.linalg.solve_triangular(L, cross.double().mT, upper=False).mT for cross in crosses]
    slopes = whites[1] if len(whites) > 1 else L[end:]
    return torch.cat([whites[0], L[first:end], slopes]), torch.cat(means)


def _with_residuals(rows: Rows, weight: Tensor, layout: ColumnLayout, prior: LatentPrior, by_judge: bool) -> Rows:
    """The rows with what is left of them given white coordinates, as noise of each, or shared by a judgement's rows, or
    by a judge's.
    """
    single, blocks, label = _judgements(rows, by_judge)
    single = single[(rows.index[single] < layout.first_pseudo_point).all(-1)]  # others are columns themselves
    variance = _prior_variance(rows, single, layout, prior)
    residual = (variance - squared_lengths(weight)[single]).clamp(min=0)  # of a projection; rounding only
    noise = rows.noise.index_add(0, single, residual)
    if not blocks:
        return replace(rows, noise=noise, noise_root=None, block=None)
    root = noise.new_zeros(rows.num_rows, max(block.shape[-1] for block in blocks))
    for block in blocks:
        # A trace of the own noise keeps the covariance regular for residuals of zero; no more, since the answers of a
        # merged row do not share noise.
        part, W = SHARE * rows.noise[block], weight[block]
        noise = noise.index_add(0, block.flatten(), -part.flatten())
        covariance = _prior_covariance(rows, block, layout, prior) - W @ W.mT
        covariance = covariance + _shared_noise(rows, block) + torch.diag_embed(part)
        L = pad(cholesky_with_relative_jitter(covariance), (0, root.shape[-1] - block.shape[-1]))
        root = root.index_copy(0, block.flatten(), L.flatten(0, 1))
    return replace(rows, noise=noise, noise_root=root, block=label)


def _judgements(rows: Rows, by_judge: bool) -> tuple[Tensor, list[Tensor], Tensor]:
    """Rows with own noise; blocks that share noise, or a judge too, `b x r` for every size `r`; their labels."""
    every = torch.arange(rows.num_rows, device=rows.index.device)
    shares = torch.zeros_like(every, dtype=torch.bool)
    if rows.noise_root is not None:
        shares = (rows.noise_root.detach() != 0).any(-1)
    label = _by_judge(rows) if by_judge else rows.label
    if rows.judge is not None and by_judge:
        shares = shares | (rows.judge != SHARED)
    _, group = label.unique(return_inverse=True)
    size = torch.zeros_like(label).index_add(0, group, shares.long())[group]
    blocks = []
    for r in size[shares].unique().tolist():
        which = (shares & (size == r)).nonzero().squeeze(-1)
        blocks.append(which[label[which].argsort(stable=True)].view(-1, r))
    return every[~shares], blocks, label


def _by_judge(rows: Rows) -> Tensor:
    """The block of each row, `m`: of its judge, or without one of its judgement; of all judges who share noise."""
    if rows.judge is None:
        return rows.label
    block = torch.where(rows.judge != SHARED, rows.judge + rows.label.max() + 1, rows.label)
    if rows.noise_root is None:
        return block
    shares = (rows.noise_root.detach() != 0).any(-1)
    _, judgement = rows.label[shares].unique(return_inverse=True)
    while True:  # each judgement takes the least of its blocks, and each block that of its judgements
        _, block = block.unique(return_inverse=True)
        least = torch.full_like(judgement, rows.num_rows).scatter_reduce(0, judgement, block[shares], "amin")[judgement]
        if bool((least == block[shares]).all()):
            return block
        every = torch.arange(rows.num_rows, device=block.device)
        block = every.scatter_reduce(0, block[shares], least, "amin")[block]


def _own_features(layout: ColumnLayout, prior: LatentPrior) -> Tensor | None:
    """Exact features of judges' own parts in the columns of the training points; `None` if their kernel has none."""
    kernel, X = prior.covar_module, prior.training_points
    if not (isinstance(kernel, JudgeKernel) and kernel.has_own_features) or prior.num_outputs > 1:
        return None
    S = X[layout.slope_points.to(X.device)]
    values, slopes = kernel.own_features(X), kernel.own_features(S, layout.slope_dims.to(X.device))
    pseudo_points = values.new_zeros(layout.num_pseudo_points, values.shape[-1])
    return torch.cat([values, pseudo_points, slopes]).double()


@torch.no_grad()
def _explain(weight: Tensor, rows: Rows, layout: ColumnLayout, prior: LatentPrior) -> bool:
    """Whether white coordinates leave no residual in any row, and so none between rows."""
    first = layout.first_pseudo_point
    end = first + layout.num_pseudo_points
    values, slopes = (rows.index < first).all(-1), (rows.index >= end).all(-1)
    for which in (values.nonzero().squeeze(-1), slopes.nonzero().squeeze(-1)):
        variance = _prior_variance(rows, which, layout, prior)
        left = variance - squared_lengths(weight)[which]
        if bool((left > NO_RESIDUAL * variance).any()):
            return False
    return True


def _shared_by_judges(rows: Rows, features: Tensor) -> tuple[Tensor, Tensor]:
    """The root of what a block's rows share (each judge's features, then the noise of each judgement); the blocks."""
    block = _by_judge(rows)
    if rows.noise_root is None:
        return features, block
    judge = torch.zeros_like(block) if rows.judge is None else rows.judge
    parts = [_side_by_side(features, judge, block), _side_by_side(rows.noise_root, rows.label, block)]
    return torch.cat(parts, dim=-1), block


def _side_by_side(root: Tensor, part: Tensor, block: Tensor) -> Tensor:
    """A root, `m x q`, in which the parts of one block have columns of their own."""
    size = int(part.max()) + 1
    pair, which = (block * size + part).unique(return_inverse=True)
    _, first = (pair // size).unique_consecutive(return_inverse=True)
    order = torch.arange(len(pair), device=pair.device)
    start = torch.full_like(pair, len(pair)).scatter_reduce(0, first, order, "amin")
    place = (order - start[first])[which]  # of a part among those of its block
    q = root.shape[-1]
    columns = q * place.unsqueeze(-1) + torch.arange(q, device=place.device)
    return root.new_zeros(len(root), q * (int(place.max()) + 1)).scatter(-1, columns, root)


def _shared_noise(rows: Rows, block: Tensor) -> Tensor | float:
    """The covariance of the noise that rows share, in blocks of rows `b x r`; `b x r x r`."""
    if rows.noise_root is None:
        return 0.0
    shared, label = rows.noise_root[block], rows.label[block]
    return shared @ shared.mT * (label.unsqueeze(-1) == label.unsqueeze(-2))


def _prior_variance(rows: Rows, which: Tensor, layout: ColumnLayout, prior: LatentPrior) -> Tensor:
    """The prior variances of some rows, without noise; wide rows apart, as to theirs all rows are padded with zeros."""
    place = torch.arange(1, rows.index.shape[-1] + 1, device=which.device)
    width = ((rows.coefficient[which] != 0) * place).amax(-1).clamp(min=1)
    variance = rows.noise.new_zeros(len(which))
    for part in (width <= _DENSE_BEYOND, width > _DENSE_BEYOND):
        if bool(part.any()):
            k = int(width[part].max())
            cut = replace(rows, index=rows.index[:, :k], coefficient=rows.coefficient[:, :k])
            covariance = _prior_covariance(cut, which[part].unsqueeze(-1), layout, prior)
            variance = variance.masked_scatter(part, covariance)
    return variance


def _prior_covariance(rows: Rows, block: Tensor, layout: ColumnLayout, prior: LatentPrior) -> Tensor:
    """The prior covariances of rows, without noise, in blocks of rows `b x r`; `b x r x r`."""
    index, coefficient = rows.index[block], rows.coefficient[block]  # b x r x k
    (b, r), k = block.shape, index.shape[-1]
    if r * k > _DENSE_BEYOND and b * (r * k) ** 2 > layout.num_columns**2:
        columns, position = index.unique(return_inverse=True)
        K = _covariance_of_columns(columns, layout, prior)
        weight = coefficient.new_zeros(b, r, len(columns)).scatter_add(-1, position, coefficient)
        return weight @ K @ weight.mT
    K = _covariance_of_columns(index.reshape(b, r * k), layout, prior)
    weight = coefficient.reshape(b, r * k)
    product = weight.unsqueeze(-1) * K * weight.unsqueeze(-2)
    return product.view(b, r, k, r, k).sum((-3, -1))


def _covariance_of_columns(columns: Tensor, layout: ColumnLayout, prior: LatentPrior) -> Tensor:
    """The prior covariance of columns of training points, `batch_shape x c x c` for `batch_shape x c`."""
    o, c = prior.num_outputs, columns.shape[-1]
    point, dims = layout.places(columns)
    K = prior.covariance_of(prior.training_points[point], dims).double()
    if o == 1:
        return K
    output = (columns % o + o * torch.arange(c, device=columns.device)).unsqueeze(-1)
    K = K.gather(-2, output.expand(*columns.shape, c * o))
    return K.gather(-1, output.mT.expand(*columns.shape, c))
