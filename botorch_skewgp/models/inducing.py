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

from botorch_skewgp.kernels.judges import JudgeKernel
from botorch_skewgp.models.latent_prior import LatentPrior, ResidualColumns
from botorch_skewgp.models.row_model import RowModel
from botorch_skewgp.rows import ColumnLayout, DenseRows, Rows
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
    _, first = transformed.unique(dim=0, return_inverse=True)
    place = torch.full((int(first.max()) + 1,), len(first), device=first.device)
    distinct = place.scatter_reduce(0, first, torch.arange(len(first), device=first.device), "amin").sort().values
    size = min(len(distinct), max(MAX_CANDIDATES, num_points))
    spaced = torch.linspace(0, len(distinct) - 1, size, dtype=torch.float64, device=first.device).round().long()
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
    """Rows over the white coordinates of the columns of inducing points."""

    root: Tensor  # the lower Cholesky factor `L` of the covariance of these columns
    rows: DenseRows
    values: Rows  # the original rows, restricted to values at training points
    of_values: Tensor  # the same over white coordinates, `m x M`
    prior: LatentPrior

    def for_judges(self, codes: Sequence[int] = ()) -> tuple[RowModel, ResidualColumns | None]:
        """The rows under their prior, with some judges' residuals as columns. Raises `UnsupportedError`."""
        rows = self.rows
        by = judge_of_rows(self.values, self.prior) if self.prior.by_judge else None
        each = [] if by is None else [(by == code).nonzero().squeeze(-1) for code in sorted(set(codes)) if code > 0]
        each = [rows_of_one for rows_of_one in each if len(rows_of_one)]
        if by is None or not each:
            return _under_standard_normal(self.root, rows), None
        if self.prior.num_outputs > 1:
            raise UnsupportedError("Judges of several latent functions need a model without inducing points.")
        mine, noise_root = torch.cat(each), rows.noise_root
        assert noise_root is not None  # each judge's rows are a block
        covariances = [
            noise_root[which] @ noise_root[which].mT + torch.diag(SHARE * rows.noise[which]) for which in each
        ]
        own = torch.block_diag(*map(cholesky_with_relative_jitter, covariances))
        further = rows.coefficient.new_zeros(rows.num_rows, len(mine)).index_copy(0, mine, own)
        touched, position = self.values.index[mine].unique(return_inverse=True)
        zeros = own.new_zeros(len(mine), len(touched))
        weight = zeros.scatter_add(-1, position, self.values.coefficient[mine])
        explained = torch.linalg.solve_triangular(self.root.mT, self.of_values[mine].mT, upper=True)
        extended = DenseRows.of_weight(
            torch.cat([rows.coefficient, further], dim=-1),
            rows,
            noise=rows.noise.index_add(0, mine, -SHARE * rows.noise[mine]),
            noise_root=noise_root.index_fill(0, mine, 0.0),
        )
        residuals = ResidualColumns(self.prior.training_points[touched], weight, explained, by[mine])
        return _under_standard_normal(torch.block_diag(self.root, own), extended), residuals


def _under_standard_normal(root: Tensor, rows: DenseRows) -> RowModel:
    """Rows over white coordinates of columns with a covariance of the given root."""
    eye = torch.eye(root.shape[-1], dtype=root.dtype, device=root.device)
    return RowModel(mean=root.new_zeros(len(root)), covariance=eye, rows=rows, column_root=root)


def judge_of_rows(values: Rows, prior: LatentPrior) -> Tensor:
    """The code of the judge at the first point of each row; 0 for rows without values."""
    by = prior.training_points[values.index[:, 0] // prior.num_outputs, -1]
    return torch.where(values.coefficient[:, 0] != 0, by, torch.zeros_like(by))


def over_white_columns(rows: Rows, layout: ColumnLayout, prior: LatentPrior, columns: MultivariateNormal) -> WhiteRows:
    """Rows over the standard normal `L^-1 (u - mean)` of the inducing points' columns `u`, with residuals."""
    L = cholesky_with_relative_jitter(columns.lazy_covariance_matrix.to_dense().double())
    X = prior.training_points
    first = layout.first_pseudo_point
    num_inducing = L.shape[-1] - (layout.num_columns - first)
    is_value = rows.index < first
    white = torch.linalg.solve_triangular(L, prior.cross_covariance(X).double().mT, upper=False).mT
    mean = torch.cat([prior.mean_at(X).double(), columns.mean[..., num_inducing:].double()], dim=-1)
    every = torch.cat([white, L[num_inducing:]], dim=-2) if layout.num_columns > first else white
    weight = rows.times(every)
    values, of_values = rows, weight
    if not bool(is_value.all()):
        values = replace(
            rows,
            index=torch.where(is_value, rows.index, 0),
            coefficient=torch.where(is_value, rows.coefficient, torch.zeros_like(rows.coefficient)),
        )
        of_values = values.times(white)
    by = judge_of_rows(values, prior) if prior.by_judge and bool(is_value.any()) else None
    mean = rows.times(mean.unsqueeze(-1)).squeeze(-1)
    features = None if by is None else _own_features(values, prior, by)
    if by is not None and features is not None and _explain(features, of_values, values, prior):
        shared, label = _shared_by_judges(rows, features, by)
        rows = replace(rows, noise_root=shared, block=label)
        return WhiteRows(L, DenseRows.of_weight(weight, rows, bias=rows.bias + mean), values, of_values, prior)
    single, blocks, label = _judgements(rows, by)
    residual = _prior_covariance(values, single.unsqueeze(-1), prior).squeeze(-1).squeeze(-1)
    explained = squared_lengths(of_values)
    residual = (residual - explained[single]).clamp(min=0)  # of a projection; rounding only
    noise = rows.noise.index_add(0, single, residual)
    root = None
    if blocks:
        root = rows.noise.new_zeros(rows.num_rows, max(block.shape[-1] for block in blocks))
        for block in blocks:
            # A trace of the own noise keeps the covariance regular for residuals of zero; no more, since the answers of
            # a merged row do not share noise.
            part, r = SHARE * rows.noise[block], block.shape[-1]
            noise = noise.index_add(0, block.flatten(), -part.flatten())
            W = of_values[block]
            covariance = _shared_noise(rows, block) + _prior_covariance(values, block, prior) - W @ W.mT
            L_of_block = cholesky_with_relative_jitter(covariance + torch.diag_embed(part))
            root = root.index_copy(
                0, block.flatten(), torch.nn.functional.pad(L_of_block, (0, root.shape[-1] - r)).flatten(0, 1)
            )
    rows = replace(rows, noise=noise, noise_root=root, block=label if blocks else None)
    return WhiteRows(L, DenseRows.of_weight(weight, rows, bias=rows.bias + mean), values, of_values, prior)


def _judgements(rows: Rows, by: Tensor | None) -> tuple[Tensor, list[Tensor], Tensor]:
    """Rows with independent noise; blocks that share noise or a judge, `b x r` for every size `r`; their labels."""
    every = torch.arange(rows.num_rows, device=rows.index.device)
    label = torch.zeros_like(every) if rows.block is None else rows.block
    shares = torch.zeros_like(every, dtype=torch.bool)
    if rows.noise_root is not None:
        shares = (rows.noise_root.detach() != 0).any(-1)
    if by is not None:
        shares = shares | (by != 0)
        label = torch.where(by != 0, by.long() + label.max() + 2, label)  # -1 for a new judge
    if not bool(shares.any()):
        return every, [], label
    size = torch.zeros_like(label).index_add(0, label.unique(return_inverse=True)[1], shares.long())
    size = size[label.unique(return_inverse=True)[1]]
    blocks = []
    for r in size[shares].unique().tolist():
        which = (shares & (size == r)).nonzero().squeeze(-1)
        blocks.append(which[label[which].argsort(stable=True)].view(-1, r))
    return every[~shares], blocks, label


def _own_features(values: Rows, prior: LatentPrior, by: Tensor) -> Tensor | None:
    """Exact features of judges' own parts in each row, `m x r`; `None` if their kernel has none."""
    kernel, X = prior.covar_module, prior.training_points
    if not (isinstance(kernel, JudgeKernel) and hasattr(kernel.own, "white")) or prior.num_outputs > 1:
        return None
    inputs = X[:, :-1] if kernel.own.active_dims is None else X[:, kernel.own.active_dims]
    white = kernel.own.white(inputs)
    if kernel.reliability is not None:
        white = white * kernel.reliability.at(X[:, -1]).unsqueeze(-1)
    return values.times(white.double()) * (by != 0).unsqueeze(-1)


@torch.no_grad()
def _explain(features: Tensor, of_values: Tensor, values: Rows, prior: LatentPrior) -> bool:
    """Whether inducing points and features leave no residual in any row, and so none between rows."""
    every = torch.arange(values.num_rows, device=features.device).unsqueeze(-1)
    variance = _prior_covariance(values, every, prior).squeeze(-1).squeeze(-1)
    left = variance - squared_lengths(of_values) - squared_lengths(features)
    return bool((left <= NO_RESIDUAL * variance).all())


def _shared_by_judges(rows: Rows, features: Tensor, by: Tensor) -> tuple[Tensor, Tensor]:
    """The root of what a judge's rows share (his features, then the noise of each of his judgements); the labels."""
    judgement = torch.zeros_like(by, dtype=torch.long) if rows.block is None else rows.block
    label = torch.where(by != 0, by.long() + judgement.max() + 2, judgement)  # -1 for a new judge
    if rows.noise_root is None:
        return features, label
    size = int(judgement.max()) + 1
    pair, which = (label * size + judgement).unique(return_inverse=True)
    _, first = (pair // size).unique_consecutive(return_inverse=True)
    start = torch.full_like(pair, len(pair)).scatter_reduce(0, first, torch.arange(len(pair)).to(pair), "amin")
    place = (torch.arange(len(pair)).to(pair) - start[first])[which]  # of a judgement among those of its judge
    q = rows.noise_root.shape[-1]
    columns = features.shape[-1] + q * place.unsqueeze(-1) + torch.arange(q, device=place.device)
    root = torch.nn.functional.pad(features, (0, q * (int(place.max()) + 1)))
    return root.scatter_add(-1, columns, rows.noise_root), label


def _shared_noise(rows: Rows, block: Tensor) -> Tensor | float:
    """The covariance of the noise that rows share, in blocks of rows `b x r`; `b x r x r`."""
    if rows.noise_root is None:
        return 0.0
    shared = rows.noise_root[block]
    covariance = shared @ shared.mT
    if rows.block is None:
        return covariance
    label = rows.block[block]
    return covariance * (label.unsqueeze(-1) == label.unsqueeze(-2))


def _prior_covariance(rows: Rows, block: Tensor, prior: LatentPrior) -> Tensor:
    """The prior covariances of rows of values, without noise, in blocks of rows `b x r`; `b x r x r`."""
    X, o = prior.training_points, prior.num_outputs
    index, coefficient = rows.index[block], rows.coefficient[block]  # b x r x k
    (b, r), k = block.shape, index.shape[-1]
    if r * k > _DENSE_BEYOND and b * (r * k) ** 2 > len(X) ** 2:
        touched, position = index.unique(return_inverse=True)
        K = _covariance_of_columns(prior, touched)
        weight = coefficient.new_zeros(b, r, len(touched)).scatter_add(-1, position, coefficient)
        return weight @ K @ weight.mT
    flat, weight = index.reshape(b, r * k), coefficient.reshape(b, r * k)
    if r * k == 1:
        variance = prior.covariance_at(X[flat[:, 0] // o].unsqueeze(-2)).diagonal(dim1=-2, dim2=-1).double()
        variance = variance.gather(-1, flat % o)
        return (weight.square() * variance).unsqueeze(-1)
    K = _covariance_of_columns(prior, flat)
    product = weight.unsqueeze(-1) * K * weight.unsqueeze(-2)
    return product.view(b, r, k, r, k).sum((-3, -1))


def _covariance_of_columns(prior: LatentPrior, columns: Tensor) -> Tensor:
    """The prior covariance of columns of values at training points, `batch_shape x c x c` for `batch_shape x c`."""
    o = prior.num_outputs
    K = prior.covariance_at(prior.training_points[columns // o]).to_dense().double()
    if o == 1:
        return K
    c = columns.shape[-1]
    output = (columns % o + o * torch.arange(c, device=columns.device)).unsqueeze(-1)
    K = K.gather(-2, output.expand(*columns.shape, c * o))
    return K.gather(-1, output.mT.expand(*columns.shape, c))
