"""How far probabilities, evidence and leave-one-out sums are from a fine reference's, and sparse grids (figure 3)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from botorch.exceptions.errors import BotorchError
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks._race import Cell, Group, Race, Row, grid
from benchmarks.transformed.predictions import DOUBLE, WARPINGS, camel
from benchmarks.transformed.sparse_grids import normal_rule, sparse_grid
from botorch_skewgp.exceptions import QuadratureWarning
from botorch_skewgp.transformed import BayesianTransformedGP, student_t
from botorch_skewgp.transformed.nodes import PROPOSAL_DF, Mode, Nodes, find_modes, widened
from botorch_skewgp.transformed.regression import keep_largest
from botorch_skewgp.truncated.univariate import gauss_rule

PROBLEMS = {  # warping, points, inputs
    "7 points, BC": ("BC", 7, 1),
    "7 points, SA": ("SA", 7, 1),
    "10 points, SA": ("SA", 10, 2),
    "14 points, L-SA": ("L-SA", 14, 2),
    "30 points, SA": ("SA", 30, 2),
}
DATA_SETS, SEEDS = 5, 2  # and seeds of rules that are random
LEVELS = torch.tensor([0.025, 0.5, 0.975], dtype=DOUBLE)
NUM_TEST = 5
BAD = 0.03  # largest error of a probability in a run that should have been warned of
REFERENCE_ROUNDS = (4096, 4096, 4096, 32768)
NUM_CENTERS = 256  # of the kernel density of a reference's round
PRIOR_SHARE = 0.1
PRIOR_SIZE = 2.5  # standard deviation of the reference's first round, in coordinates
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "128 nodes": {"num_nodes": 128},
    "512 nodes": {"num_nodes": 512},
}
VALUES = ("mean_error", "largest_error", "coverage", "evidence", "leave_one_out", "warned", "refused")
GAPS = ("gap", "evidence_gap", "leave_one_out_gap")  # of two references


def _data(seed: int, n: int, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Points, positive outcomes with a long tail, and test points."""
    generator = torch.Generator().manual_seed(1000 * seed + n)
    X, test_X = (torch.rand(size, dim, generator=generator, dtype=DOUBLE) for size in (n, NUM_TEST))
    f = 1.2 * torch.sin(6 * X[:, 0] + seed) + (0.8 * torch.cos(4 * X[:, -1]) if dim > 1 else 0.0)
    z = f + 0.2 * torch.randn(n, generator=generator, dtype=DOUBLE)
    return X, z.exp().unsqueeze(-1), test_X.unsqueeze(-2)


@torch.no_grad()
def reference_nodes(
    log_posterior: Callable[[Tensor], Tensor], start: Tensor, seed: int, rounds: Sequence[int] = REFERENCE_ROUNDS
) -> Nodes:
    """Many nodes by rounds of importance sampling, each from Student t kernels around nodes of those before."""
    generator, dim, df = torch.Generator().manual_seed(seed), len(start), 5.0
    constant = math.lgamma(0.5 * (df + dim)) - math.lgamma(0.5 * df) - 0.5 * dim * math.log(math.pi * df)
    wide = narrow = (start.unsqueeze(0), PRIOR_SIZE * torch.eye(dim, dtype=DOUBLE))

    def draw(centers: Tensor, root: Tensor, num: int) -> Tensor:
        which = torch.randint(len(centers), (num,), generator=generator)
        normal = torch.randn(num, dim, generator=generator, dtype=DOUBLE)
        chi_square = torch.randn(num, int(df), generator=generator, dtype=DOUBLE).square().sum(-1, keepdim=True)
        return centers[which] + (normal * (df / chi_square).sqrt()) @ root.mT

    def log_density(u: Tensor, centers: Tensor, root: Tensor) -> Tensor:
        white = (torch.linalg.solve_triangular(root, x.mT, upper=False).mT for x in (u, centers))
        square = torch.cdist(*white, compute_mode="donot_use_mm_for_euclid_dist").square()
        parts = constant - root.diagonal().log().sum() - 0.5 * (df + dim) * torch.log1p(square / df)
        return parts.logsumexp(-1) - math.log(len(centers))

    u, values = start.new_zeros(0, dim), start.new_zeros(0)
    mixture: list[tuple[float, tuple[Tensor, Tensor]]] = []  # numbers of nodes, and what they are from
    for num in rounds:
        mixture += [(PRIOR_SHARE * num, wide), ((1 - PRIOR_SHARE) * num, narrow)]
        from_prior = round(PRIOR_SHARE * num)
        new = torch.cat([draw(*wide, from_prior), draw(*narrow, num - from_prior)])
        u = torch.cat([u, new])
        values = torch.cat([values, *(log_posterior(part) for part in new.split(2048))])
        mixed = torch.stack([math.log(count) + log_density(u, *part) for count, part in mixture]).logsumexp(0)
        weights = torch.softmax(values - mixed, 0)
        center = weights @ u
        covariance = (u - center).mT @ (weights.unsqueeze(-1) * (u - center))
        width = 1.2 * NUM_CENTERS ** (-1 / (dim + 4))  # a share of the posterior's, as for densities of normal kernels
        centers = u[torch.multinomial(weights, NUM_CENTERS, replacement=True, generator=generator)]
        narrow = centers, width * torch.linalg.cholesky(covariance + 1e-8 * torch.eye(dim, dtype=DOUBLE))
    return Nodes(u, -mixed)


class Reference:
    """Models of one data set by a fine reference, made twice; they know their own difference."""

    def __init__(
        self, make: Callable[..., BayesianTransformedGP], test_X: Tensor, rounds: Sequence[int] = REFERENCE_ROUNDS
    ) -> None:
        self.test_X = test_X
        models = [make(tolerance=0.0) for _ in range(2)]  # without an outcome other nodes may count
        for seed, model in enumerate(models, 7):
            model.use_nodes(reference_nodes(model.log_posterior, model.coordinates(), seed, rounds))
        self.laws = [model.posterior(self.test_X) for model in models]
        self.evidences = [model.log_evidence for model in models]
        self.leave_one_out = [float(model.leave_one_out().log_density.sum()) for model in models]
        gap = (self.laws[1].cdf(self.laws[0].quantile(LEVELS)) - LEVELS.view(-1, 1, 1, 1)).abs()
        others = (abs(one - other) for one, other in (self.evidences, self.leave_one_out))
        self.gaps = dict(zip(GAPS, (float(gap.max()), *others), strict=True))

    @torch.no_grad()
    def scores(self, model: BayesianTransformedGP) -> dict[str, float | None]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                quantiles = model.posterior(self.test_X).quantile(LEVELS)
                left_out = float(model.leave_one_out().log_density.sum())
                evidence = model.log_evidence
            except BotorchError:
                return {**dict.fromkeys(VALUES), "warned": 0.0, "refused": 1.0}
        levels = sum(law.cdf(quantiles) for law in self.laws) / 2
        warned = any(issubclass(warning.category, QuadratureWarning) for warning in caught)
        error = (levels - LEVELS.view(-1, 1, 1, 1)).abs()
        coverage = (levels[2] - levels[0]).min()
        differences = evidence - sum(self.evidences) / 2, left_out - sum(self.leave_one_out) / 2
        scores = (error.mean(), error.max(), coverage, *differences, warned, 0.0)
        return {name: float(score) for name, score in zip(VALUES, scores, strict=True)}


def _run(problem: str, method: str, seed: int, rounds: Sequence[int] = REFERENCE_ROUNDS) -> list[dict[str, Cell]]:
    """The scores of all methods, that which is asked for first, on a data set that is numbered by the seed."""
    warping, n, dim = PROBLEMS[problem]
    X, Y, test_X = _data(seed, n, dim)

    def make(**settings: Any) -> BayesianTransformedGP:
        return BayesianTransformedGP(X, Y, warping=WARPINGS[warping](), **settings)

    reference = Reference(make, test_X, rounds)
    return [
        {"method": method, "again": again, **reference.scores(make(seed=again, **settings)), **reference.gaps}
        for method, settings in METHODS.items()
        for again in range(SEEDS)
    ]


def _columns(runs: Group) -> dict[str, Cell]:
    value = {name: runs.values(name) for name in (*VALUES, *GAPS)}
    is_bad, is_silent = value["largest_error"] > BAD, value["warned"] == 0
    left_out = value["leave_one_out"].abs().nan_to_num(0.0)
    return {
        "runs": len(runs),
        "mean_error": float(value["mean_error"].nanmean()),
        "coverage": float(value["coverage"].nanmean()),
        "least_coverage": float(value["coverage"].nan_to_num(1.0).min()),
        "evidence_rms": float(value["evidence"].square().nanmean().sqrt()),
        "leave_one_out_rms": float(value["leave_one_out"].square().nanmean().sqrt()),
        "leave_one_out_largest": float(left_out.max()),
        "leave_one_out_silent": float((left_out * is_silent).max()),
        "bad": int(is_bad.sum()),
        "bad_silent": int((is_bad & is_silent).sum()),
        "warned": int((~is_silent).sum()),
        "refused": int(value["refused"].sum()),
        "wrong_silent": int(((value["mean_error"] > 0.02) & is_silent).sum()),
        **{name: float(value[name].nan_to_num(0.0).max()) for name in GAPS},
    }


# Sparse grids beside quasi-Monte Carlo (figure 3), in a box and adapted

NUM_POINTS, NUM_TEST_OF_RULES, BOX, SEEDS_OF_RULES = 30, 50, 2.5, 3
OF_RULES = ("evaluations", "kernels", "condition", "evidence", "mse")
MAX_CONDITION = 10.0  # sizes of weights, relative to their sum, beyond which a grid is refused


class Signed(NamedTuple):
    """Nodes, `S x D`, and the logarithms of the sizes of their weights and the signs of these, `S`."""

    u: Tensor
    log_size: Tensor
    sign: Tensor


Rule = Callable[[BayesianTransformedGP, Mode, int, int], Signed | None]  # of a level and a seed; none: the model's own


def _size(dim: int, level: int) -> int:
    """The evaluations that all rules of a level have: those of the nested grid."""
    return len(sparse_grid(dim, level)[0])


def _in_box(mode: Mode, grid: Tensor, weights: Tensor) -> Signed:
    """Nodes in the box around a mode from those in the cube [-1, 1]^D, whose weights sum to one."""
    log_volume = (2 * BOX * mode.root.diagonal()).log().sum()
    return Signed(mode.center + BOX * grid @ mode.root.mT, weights.abs().log() + log_volume, weights.sign())


def _legendre(model: BayesianTransformedGP, mode: Mode, level: int, seed: int) -> Signed:
    dim = len(mode.center)  # of these grids, that with the nearest number of nodes
    grids = [sparse_grid(dim, own, lambda num: gauss_rule("legendre", num)) for own in range(2, level + 1)]
    return _in_box(mode, *min(grids, key=lambda grid: abs(math.log(len(grid[0]) / _size(dim, level)))))


def _laplace(model: BayesianTransformedGP, mode: Mode, level: int, seed: int) -> Signed:
    grid, weights = sparse_grid(len(mode.center), level, normal_rule)
    log_density = -0.5 * (grid.square() + math.log(math.tau)).sum(-1) - mode.root.diagonal().log().sum()
    return Signed(mode.center + grid @ mode.root.mT, weights.abs().log() - log_density, weights.sign())


def _uniform(model: BayesianTransformedGP, mode: Mode, level: int, seed: int) -> Signed:
    dim = len(mode.center)
    grid = 2 * SobolEngine(dim, scramble=True, seed=seed).draw(_size(dim, level), dtype=DOUBLE) - 1
    return _in_box(mode, grid, torch.full((len(grid),), 1 / len(grid), dtype=DOUBLE))


def _student(model: BayesianTransformedGP, mode: Mode, level: int, seed: int) -> Signed:
    """Through Student t coordinates, on which the posterior's own width is told."""
    mode = widened(model.log_posterior, mode)
    grid, weights = sparse_grid(len(mode.center), level)
    t = student_t.quantile(torch.special.ndtr(grid), PROPOSAL_DF)
    root = math.sqrt(1 - 2 / PROPOSAL_DF) * mode.root  # of a t variable of the mode's covariance
    log_density = student_t.log_density(t, PROPOSAL_DF).sum(-1) - root.diagonal().log().sum()
    return Signed(mode.center + t @ root.mT, weights.abs().log() - log_density, weights.sign())


RULES: dict[str, Rule] = {
    "Gauss-Legendre, box": _legendre,
    "Genz-Keister, Laplace": _laplace,
    "Genz-Keister, t": _student,
    "QMC, box": _uniform,
    "QMC, adapted": lambda model, mode, level, seed: None,
}


@torch.no_grad()
def _of_rule(rule: str, level: int, seed: int) -> list[dict[str, Cell]]:
    if seed and not rule.startswith("QMC"):
        return []
    data = camel(NUM_POINTS, NUM_TEST_OF_RULES)

    def make(**settings: float) -> BayesianTransformedGP:
        return BayesianTransformedGP(data.X, data.Y, warping=WARPINGS["L-SA"](), **settings)  # type: ignore[arg-type]

    model = make()
    start = model.coordinates()
    along = torch.tensor(["lengthscale" in name for name in model.parameter_names()]).to(start)
    mode = find_modes(model.log_posterior, start, 4, 0, along)[0]
    nodes = RULES[rule](model, mode, level, seed)
    test_X = data.test_X.unsqueeze(-2)
    if nodes is not None:
        return [_score_of_grid(model, nodes, test_X, data.test_y)]
    model = make(num_nodes=_size(len(start), level), least_effective=0.0, seed=seed)
    law, given = model.posterior(test_X), model._nodes  # noqa: SLF001
    assert given is not None
    error = float((law.median.flatten() - data.test_y).square().mean())
    scores = (len(given.u), len(model.weighted_nodes.of_kernels), 1.0, model.log_evidence, error)
    return [dict(zip(OF_RULES, scores, strict=True))]


def _score_of_grid(model: BayesianTransformedGP, given: Signed, test_X: Tensor, test_y: Tensor) -> dict[str, Cell]:
    """As of other rules, with weights of which some are negative; none where these all but cancel the others."""
    process = model.eval()._process  # noqa: SLF001
    log_weight = process.weigh(given.u, given.log_size).log_weight
    share = given.sign * log_weight.softmax(0)
    condition = float(1 / share.sum())
    if not 0 < condition < MAX_CONDITION:
        return dict.fromkeys(OF_RULES)
    kept = keep_largest(share.abs(), model.tolerance)
    quadrature = process.quadrature(Nodes(given.u[kept], given.log_size[kept]), 0.0)
    law = process.posterior(quadrature, model.transform_inputs(test_X))
    law._probabilities = share[kept] / share[kept].sum()  # noqa: SLF001
    return {
        "evaluations": len(given.u), "kernels": len(quadrature.nodes.of_kernels), "condition": condition,
        "evidence": float(log_weight.logsumexp(0)) - math.log(condition),
        "mse": float((law.quantile(0.5).flatten() - test_y).square().mean()),
    }  # fmt: skip


def _less_than_last(rows: Sequence[Row]) -> list[Row]:
    """Evidences less that of the most adapted nodes."""
    most = max((int(row["level"]) for row in rows), default=0)
    last = [float(row["evidence"]) for row in rows if (row["rule"], row["level"]) == ("QMC, adapted", str(most))]
    center = sum(last) / max(len(last), 1)
    return [{**row, "evidence": str(float(row["evidence"] or "nan") - center)} for row in rows]


RACES = (
    Race(
        "transformed_quadrature", grid(problem=PROBLEMS), grid(method=["default"]), range(DATA_SETS), _run,
        ("again", *VALUES, *GAPS), _columns,
        ["mean_error: |F - p| at own quantiles p = .025, .5, .975; coverage: the least of 95 %, mean and least",
         f"bad: runs with an error above {BAD}; bad_silent: those not warned of; wrong_silent: mean above .02",
         "gap, evidence_gap, leave_one_out_gap: the largest differences of two references, in cdfs and nats"],
        derived=lambda row: {"seed": f"{row['seed']} {row['again']}"}, pooled="problem",
        quick={"rounds": REFERENCE_ROUNDS[:1] * 2},
    ),
    Race(
        "transformed_figure_3", grid(level=range(2, 6)), grid(rule=RULES), range(SEEDS_OF_RULES),
        _of_rule, OF_RULES,
        lambda runs: {"runs": len(runs), "refused": int(runs.values("mse").isnan().sum()),
                      **{name: float(runs.values(name).nanmean()) for name in OF_RULES}},
        [f"camel, {NUM_POINTS} points, {NUM_TEST_OF_RULES} test points, affine and sinh-arcsinh; means over seeds",
         "kernels: of the nodes kept at a tolerance of 1 %; mse: of medians against the function, as in the paper",
         "condition: of all weights, the sum of sizes over the sum",
         "evidence: in nats, less that of QMC, adapted, with the most nodes; of the runs up to a constant"],
        told=_less_than_last,
    ),
)  # fmt: skip
