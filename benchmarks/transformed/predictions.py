"""Predictions of IntSine beside the printed ones, and of other sets beside maximum likelihood."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks._reporting import Cell, Table, say
from benchmarks._runs import Runs
from benchmarks.transformed.data import SETS, camel, int_sine, levy
from benchmarks.transformed.methods import (
    BASELINES,
    MAXIMUM_LIKELIHOOD,
    WARPINGS,
    Score,
    kernel_of_the_paper,
    methods,
    paper_score,
    transformed_score,
)
from botorch_skewgp.transformed import BayesianTransformedGP
from botorch_skewgp.warpings import BoxCox

PRINTED = {  # RMSE and NLPD of IntSine, by Zhu et al. (2023)
    "GP": (0.227, -1.179),
    "WGP-A": (0.179, -1.392),
    "WGP-SA": (0.172, -1.693),
    "WGP-BC": (0.184, -1.371),
    "CWGP-L-SA": (0.172, -1.693),
    "CWGP-A-BC": (0.174, -1.457),
    "BTG-I": (0.169, -1.429),
    "BTG-A": (0.168, -1.443),
    "BTG-SA": (0.165, -1.759),
    "BTG-BC": (0.170, -1.439),
    "BTG-L-SA": (0.145, -1.781),
    "BTG-A-BC": (0.159, -1.516),
}
PRINTED_CAMEL = {"GP": (2.003, 11.2), "BTG-L-SA": (1.673, 0.730)}  # the same of the six-hump camel
FALL = 2.0  # of the log likelihood
PAPER = ", uniform priors"
LENGTHSCALES = ", lengthscales of the paper"
WIDTH = 2 * math.pi  # of the interval of inputs
COLUMNS = ("method", "rmse", "rmse_sd", "nlpd_scaled", "nlpd_sd", "coverage_90", "printed_rmse", "printed_nlpd")


def int_sine_table(notes: list[str], draws: int, warpings: Sequence[str], num_nodes: int, folder: Path | None) -> Table:
    """IntSine over draws of the noise; beside defaults, the paper's prior of lengthscales, and where it gates all."""
    table = Table(
        "transformed_int_sine",
        COLUMNS,
        notes=[
            *notes,
            f"means over {draws} noise draws, with their standard deviations; densities of y / max y at the noise-free "
            "truth",
            "BTG, WGP and CWGP have this package's default priors, but for those with the uniform ones of the paper, "
            "or with its prior of lengthscales alone: uniform in their inverse squares, on (0, 50); or none",
        ],
    )
    runs = Runs("transformed_int_sine_runs", ("seed", "method"), Score._fields, folder)
    scores: dict[str, list[Score]] = {}
    for seed in range(draws):
        data = int_sine(seed)
        makers = methods(data, tuple(warpings), num_nodes)
        for name in ("I", "BC"):
            makers[f"BTG-{name}{PAPER}"] = lambda data=data, name=name: paper_score(data, name, WIDTH, num_nodes)
        for name in warpings:
            makers[f"BTG-{name}{LENGTHSCALES}"] = lambda data=data, name=name: transformed_score(
                data, WARPINGS[name](), "sobol", num_nodes, kernel_of_the_paper(WIDTH)
            )
        for name, make in makers.items():
            score = Score(*runs.get((seed, name), make))
            scaled = score._replace(nlpd=score.nlpd - float(data.Y.max().log()))
            scores.setdefault(name, []).append(scaled)
        say(f"IntSine {seed + 1} of {draws}")
    for name, draws_of in scores.items():
        short = name.removesuffix(PAPER).removesuffix(LENGTHSCALES).removesuffix(MAXIMUM_LIKELIHOOD)
        printed = PRINTED.get(short, (None, None))
        table.add(method=name, **_means(draws_of), printed_rmse=printed[0], printed_nlpd=printed[1])
    return table


def camel_table(notes: list[str], num_nodes: int) -> Table:
    """The six-hump camel at fifty Sobol points, without noise (Zhu et al., table 4)."""
    columns = ("method", *Score._fields, "printed_rmse", "printed_nlpd")
    table = Table("transformed_camel", columns, notes=[*notes, "50 Sobol points, 400 test points"])
    for name, make in methods(camel(50, 400), ("I", "SA", "L-SA"), num_nodes).items():
        printed = PRINTED_CAMEL.get(name, (None, None))
        table.add(method=name, **make()._asdict(), printed_rmse=printed[0], printed_nlpd=printed[1])
    return table


def flat_likelihoods(notes: list[str]) -> Table:
    """How far Box-Cox's parameter may go while the likelihood, at the best others, falls by two (Zhu et al., figure 2).

    Of nodes that are spread as the posterior is, so that the intervals may be too narrow.
    """
    table = Table("transformed_flat", ("n", "best", "lowest", "highest"), notes=[*notes, "Levy function, noise 0.1"])
    for n in (8, 15, 30, 60):
        data = levy(n, 0)
        model = BayesianTransformedGP(data.X, data.Y, warping=BoxCox(), num_nodes=4096, tolerance=0.0)
        nodes = model.weighted_nodes
        parameter = nodes.u[:, model.parameter_names().index("warping.raw_power")].exp()
        fall = nodes.log_likelihood.max() - nodes.log_likelihood
        inside = parameter[fall < FALL]
        ends = {"lowest": float(inside.min()), "highest": float(inside.max())}
        table.add(n=n, best=float(parameter[fall.argmin()]), **ends)
    return table


def _means(scores: Sequence[Score]) -> dict[str, Cell]:
    rmse, nlpd, coverage = zip(*scores, strict=True)
    return {
        "rmse": statistics.mean(rmse),
        "rmse_sd": statistics.stdev(rmse),
        "nlpd_scaled": statistics.mean(nlpd),
        "nlpd_sd": statistics.stdev(nlpd),
        "coverage_90": statistics.mean(coverage),
    }


def sets_tables(notes: list[str], draws: int, num_nodes: int, folder: Path | None) -> list[Table]:
    """Other sets: scores, and what integrating is worth beside each baseline of maximum likelihood, paired."""
    table = Table(
        "transformed_sets", ("set", "method", "rmse", "nlpd", "coverage_90"), notes=[*notes, f"means of {draws}"]
    )
    paired = Table(
        "transformed_sets_paired",
        ("baseline", "against", "pairs", "gain_nats", "standard_error", "sets_won"),
        notes=[
            *notes,
            "negative log density of the baseline less that of the transformed process, same data",
            "standard errors from the means of data sets, whose pairs belong together",
        ],
    )
    runs = Runs("transformed_sets_runs", ("set", "seed", "method"), Score._fields, folder)
    scores: dict[str, dict[str, list[Score]]] = {}
    for seed in range(draws):
        for label, make_data in SETS.items():
            for name, make in methods(make_data(seed), ("I", "A", "SA", "BC", "L-SA"), num_nodes).items():
                score = Score(*runs.get((label, seed, name), make))
                scores.setdefault(label, {}).setdefault(name, []).append(score)
            say(f"{label} {seed + 1} of {draws}")
    for label, found in scores.items():
        for name, draws_of in found.items():
            rmse, nlpd, coverage = (statistics.mean(column) for column in zip(*draws_of, strict=True))
            table.add(set=label, method=name, rmse=rmse, nlpd=nlpd, coverage_90=coverage)
    kinds = {"all of the largest likelihood": MAXIMUM_LIKELIHOOD, "all modes, with priors": ""}  # ends of names
    every: dict[str, dict[tuple[str, int], list[float]]] = {kind: {} for kind in kinds}
    for baseline in sorted({name for found in scores.values() for name in found if name.startswith(BASELINES)}):
        warping = baseline.removesuffix(MAXIMUM_LIKELIHOOD).partition("-")[2]
        against = f"BTG-{warping or 'SA'}"
        gains = {
            (label, i): [b.nlpd - a.nlpd]
            for label, found in scores.items()
            if baseline in found
            for i, (a, b) in enumerate(zip(found[against], found[baseline], strict=True))
        }
        _add_pairs(paired, baseline, against, gains)
        if warping:
            kind = next(kind for kind, suffix in kinds.items() if baseline.endswith(suffix))
            for key, gain in gains.items():
                every[kind].setdefault(key, []).extend(gain)
    for kind, of_kind in every.items():
        _add_pairs(paired, kind, "the same warping", of_kind)
    return [table, paired]


def _add_pairs(table: Table, baseline: str, against: str, gains: Mapping[tuple[str, int], Sequence[float]]) -> None:
    """A row of gains by set and draw."""
    means = [statistics.mean(of_data) for of_data in gains.values()]
    labels = dict.fromkeys(label for label, _ in gains)
    of_sets = [statistics.mean(mean for (of, _), mean in zip(gains, means, strict=True) if of == key) for key in labels]
    table.add(
        baseline=baseline,
        against=against,
        pairs=sum(map(len, gains.values())),
        gain_nats=statistics.mean(means),
        standard_error=statistics.stdev(means) / math.sqrt(len(means)),
        sets_won=f"{sum(mean > 0 for mean in of_sets)} of {len(of_sets)}",
    )
