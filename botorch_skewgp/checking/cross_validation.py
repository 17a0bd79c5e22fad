r"""Leave-one-out predictive densities without refitting, and draws and log likelihoods for ArviZ.

.. [Gelfand1992] Gelfand, Dey, Chang. Bayesian Statistics 4, 1992.
.. [Vehtari2017] Vehtari, Gelman, Gabry. Statistics and Computing 27, 2017.
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from botorch.exceptions.errors import UnsupportedError
from torch import Tensor

from botorch_skewgp.models.conditioning import draw_values
from botorch_skewgp.models.skew_gp import SkewGP
from botorch_skewgp.protocols import check_skew_gp
from botorch_skewgp.rows import Rows
from botorch_skewgp.truncated.draws import noiseless_given_rows
from botorch_skewgp.truncated.factorization import cholesky_with_relative_jitter
from botorch_skewgp.truncated.row_factor import open_uniform
from botorch_skewgp.truncated.univariate import log_interval_probability, log_normal_density

RAMP = 1e-9  # nats, from the first draw to the last: far above rounding, far below all errors


class LeaveOneOut(NamedTuple):
    r"""Predictive log densities of every observation given all others.

    Args:
        log_predictive: An `m`-dim tensor, in the order of the observations: the log probability of a duel, a label, a
            grade, a choice, a ranking; the log density of a number in units of the outcome.
        effective_size: An `m`-dim tensor of effective numbers of draws; `inf` where the entry is exact. Below about 50
            do not trust the entry: leave the observation out and refit.
        observation: An `m`-dim integer tensor: the number of the entry's observation object.
    """

    log_predictive: Tensor
    effective_size: Tensor
    observation: Tensor


@torch.no_grad()
def leave_one_out(model: SkewGP) -> LeaveOneOut:
    r"""Leave-one-out predictive log densities by importance sampling on the model's draws.

    The rows of an answer are left out together, those of a vote, a choice or a ranking, and so are all rows that share
    noise, as of an event of label preferences or of an affine probit. With `P_I(u_{-I})` the probability (or density,
    for a number) of the rows `I` given draws of all others,

        `p(I | others) = 1 / E[1 / P_I(u_{-I})]`,

    where the average is over the posterior given everything ([Gelfand1992]_). A single row is integrated out in closed
    form. For several, `1 / P_I` is replaced by the average over the draws' `u_I` of `1 / prod_j P_j(u_{-I}, u_{I,
    >j})`, the rows of `I` one after another: their sequentially truncated normal has a density that integrates to one
    over the box, and its ratio to `P_I` times the density of `u_I` is that product. The weights give the effective size
    ([Vehtari2017]_). Hyperparameters are fixed. The value and the validity of one experiment count as two observations.
    The rows of a skew prior are never left out, and a ranking whose items all have equal rank has no entry. The sum of
    the densities is the usual score for comparing models.

    Raises:
        UnsupportedError: If the model is a fantasy model.
    """
    log_p, observation, is_exact = _log_densities_by_draw(model)
    log_sum = torch.logsumexp(-log_p, dim=0)
    size = torch.exp(2 * log_sum - torch.logsumexp(-2 * log_p, dim=0))  # of the weights 1 / p
    if is_exact:
        size = torch.full_like(size, torch.inf)
    return LeaveOneOut(math.log(len(log_p)) - log_sum, size, observation)


def _log_densities_by_draw(model: SkewGP) -> tuple[Tensor, Tensor, bool]:
    """Log densities of observations given draws of all others, `S x m`, their objects, and whether they are exact."""
    check_skew_gp(model, "A leave-one-out density")
    if model.batch_shape:
        raise UnsupportedError("Fantasy models have no leave-one-out densities; use the model they come from.")
    if any(entry.answer_weights is not None for entry in model.observations):
        raise UnsupportedError(
            "Answers with weights, count= of fractions, have no leave-one-out densities; predict held-out answers."
        )
    model = deepcopy(model).eval()  # another thread may change the original
    draws = model.draws
    prior = model.forward(model.train_inputs[0])
    row_model = model.row_model(prior)
    num_prior_rows = 0 if model.skew_prior is None else model.skew_prior.latent_dim
    units, counts = [torch.arange(num_prior_rows, device=row_model.mean.device)], [num_prior_rows]
    jacobian = [row_model.mean.new_zeros(num_prior_rows)]  # the log derivative of each number's warping, if any
    for entry in model.observations:
        rows_of_entry = model.likelihood.rows(entry, row_model.mean, model.outcome_scale)
        answer = model.likelihood.for_kind(type(entry)).answer_of_rows(entry, rows_of_entry)
        of_entry = _units(rows_of_entry, answer)
        units.append(sum(counts) + of_entry)
        counts.append(int(of_entry.max()) + 1 if of_entry.numel() else 0)
        jacobian.append(model.likelihood.log_jacobian(entry, row_model.mean, model.outcome_scale).expand(counts[-1]))
    of_rows, is_equality = torch.cat(units), row_model.rows.is_equality
    of_intervals, of_numbers = of_rows[~is_equality], of_rows[is_equality]
    is_exact = row_model.intervals.num_rows == 0
    log_density = row_model.mean.new_zeros(1 if is_exact else draws.rows.shape[-2], sum(counts))
    rows = draws.rows.to(row_model.mean)
    if row_model.intervals.num_rows:
        distribution = row_model.truncated_normal
        if distribution.heights is not None and distribution.heights.answer is not None:
            raise UnsupportedError(
                "Answers of several rows that may be slips have no leave-one-out densities; predict held-out ones."
            )
        if draws.rows.shape[-1] != distribution.num_rows:  # draws of means of equal rows
            generator = torch.Generator(device=rows.device).manual_seed(model.draw_settings.seed)
            merged = model.row_model(prior, model.row_plan(merge_equal=True)).truncated_normal
            h = noiseless_given_rows(merged, rows, generator, single=distribution)
            rows = distribution.factor.draw_given(h, open_uniform(h, generator))
        mean, scale = _conditionals(rows, distribution.mean, distribution.gamma_cholesky, of_intervals)
        log_p = log_interval_probability((distribution.lower - mean) / scale, (distribution.upper - mean) / scale)
        if distribution.heights is not None:
            log_p = torch.logaddexp(log_p + distribution.heights.log_gain, distribution.heights.log_outside)
        log_density.index_add_(-1, of_intervals, log_p)
    if row_model.numbers.num_rows:
        numbers, k = row_model.numbers, row_model.numbers.num_rows
        every = Rows.cat([numbers, row_model.intervals])
        joint = every.covariance(row_model.covariance) + torch.diag_embed(every.noise)
        drawn = rows[: len(log_density)]
        values = torch.cat([numbers.lower.expand(len(drawn), -1), drawn], dim=-1)
        alone = torch.arange(every.num_rows, device=values.device)
        given = _conditionals(values, every.mean(row_model.mean), cholesky_with_relative_jitter(joint), alone)
        mean, scale = (part[:, :k] for part in given)
        log_p = log_normal_density((numbers.lower - mean) / scale) - scale.log() - math.log(model.outcome_scale.scale)
        log_density[:, of_numbers] = log_p + torch.cat(jacobian)[of_numbers]
    index = torch.arange(len(counts) - 1).repeat_interleave(torch.tensor(counts[1:], dtype=torch.long))
    return log_density[:, num_prior_rows:], index.to(of_rows.device), is_exact


@torch.no_grad()
def to_arviz(model: SkewGP, seed: int = 0) -> Any:
    r"""A model's draws as ArviZ's `InferenceData`, for `az.summary`, `az.plot_trace`, `az.loo` and `az.compare`.

    - `posterior`: `f`, the function at the model's `datapoints`, in units of the outcome: `chain x draw x point`.
    - `log_likelihood`: `log_density`, that of each observation given each draw of all others, `chain x draw x answer`,
      in the order of `leave_one_out`. The noise of the observation itself is integrated out, so that the
      Pareto-smoothed importance sampling of `az.loo` ([Vehtari2017]_) needs little smoothing. Draws differ by 1e-9 nats
      at least: ArviZ's fit of a tail divides by its spread, which would be zero for answers that all draws are sure of.
    - `constant_data`: `X`, the points, and `observation`, the number of the observation object of each answer.

    Hyperparameters are fixed. Models compared by `az.compare` must have the same observations in the same order.

    Args:
        model: A model with one output and observations other than numbers.
        seed: The seed of the function's values given the draws.

    Raises:
        ModuleNotFoundError: If ArviZ is not installed; its interface is that of versions below 1.0.
        UnsupportedError: If the model has no draws (numbers alone, or `approximation="ep"`), several outputs, or is a
            fantasy model.

    Example:
        >>> data = to_arviz(SkewGP(train_X, Preference(pairs)))
    """
    import arviz

    log_density, observation, is_exact = _log_densities_by_draw(model)
    if model.num_outputs != 1:
        raise UnsupportedError(f"to_arviz is for models with one output; this one has {model.num_outputs}.")
    if is_exact:
        raise UnsupportedError("Numbers alone have no draws: their posterior is Gaussian. Use leave_one_out(model).")
    model = deepcopy(model).eval()
    draws = model.draws
    # the model's own mixture has draws in another order, not by chains
    mixture = model.row_model(model.forward(model.train_inputs[0])).representer_mixture(draws)
    _, values = draw_values(model.fitted().posterior_of_mixture(model.datapoints, mixture), 1, seed)
    values = model.outcome_scale.unstandardize(values)

    def by_chain(samples: Tensor) -> Any:
        return samples.unflatten(0, (draws.num_chains, -1)).cpu().numpy()

    ramp = torch.linspace(0, RAMP, len(log_density)).to(log_density).unsqueeze(-1)
    return arviz.from_dict(
        posterior={"f": by_chain(values.mT)},
        log_likelihood={"log_density": by_chain(log_density - ramp)},
        constant_data={"X": model.datapoints.cpu().numpy(), "observation": observation.cpu().numpy()},
        dims={"f": ["point"], "log_density": ["answer"], "X": ["point", "input"], "observation": ["answer"]},
    )


def _units(rows: Rows, answer: Tensor) -> Tensor:
    """For each row the number of its group of rows of one answer or connected by shared noise, by first answers."""
    label, linked = answer, answer == answer.unsqueeze(-1)
    if not rows.num_rows:
        return label
    if rows.noise_root is not None:
        covariance = rows.noise_covariance
        sd = covariance.diagonal().sqrt()
        rounding = rows.num_rows * torch.finfo(sd.dtype).eps
        linked = linked | (covariance.abs() > rounding * sd * sd.unsqueeze(-1))
    while True:  # as often as the longest chain of links is long
        lowest = torch.where(linked, label, torch.iinfo(label.dtype).max).amin(-1)
        if torch.equal(lowest, label):
            return label.unique(return_inverse=True)[1]
        label = lowest


def _conditionals(values: Tensor, mean: Tensor, cholesky: Tensor, unit: Tensor) -> tuple[Tensor, Tensor]:
    """Means and deviations of every row given draws of all other units and of the later rows of its own.

    With `L` the Cholesky factor of a unit's block of the precision matrix `Lambda`, these have standard deviations
    `1 / L_jj`, and `u` is above their means by `(L^-1 (Lambda (u - mean))_I)_j` of them.
    """
    precision = torch.cholesky_inverse(cholesky)
    blocks = torch.where(unit == unit.unsqueeze(-1), precision, torch.zeros_like(precision))
    L = cholesky_with_relative_jitter(blocks)
    above = torch.linalg.solve_triangular(L, ((values - mean) @ precision).mT, upper=False).mT
    scale = 1 / L.diagonal()
    return values - above * scale, scale.unsqueeze(0)
