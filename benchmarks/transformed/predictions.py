"""Predictions of IntSine and the camel beside the printed ones, and of other sets beside maximum likelihood."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchmarks._race import Group, Race, grid, mean_and_error
from benchmarks._reporting import Cell, Table
from benchmarks._runs import Row
from benchmarks.experiments._experiment import Experiment
from benchmarks.transformed.data import SETS, Data, camel, int_sine, levy
from benchmarks.transformed.methods import (
    MAXIMUM_LIKELIHOOD,
    RIVALS,
    WARPINGS,
    Score,
    kernel_of_the_paper,
    methods,
    names_of,
    paper_score,
    transformed_score,
)
from botorch_skewgp.transformed import BayesianTransformedGP
from botorch_skewgp.warpings import BoxCox

PRINTED: dict[str, Mapping[str, tuple[float, float]]] = {  # RMSE and NLPD, by Zhu et al. (2023)
    "IntSine": {
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
    },
    "camel": {"GP": (2.003, 11.2), "BTG-L-SA": (1.673, 0.730)},
}
FALL = 2.0  # of the log likelihood
PAPER = ", uniform priors"
LENGTHSCALES = ", lengthscales of the paper"
WIDTH = 2 * math.pi  # of the interval of inputs
POOLED = {"all, integrated": "", "all modes, with priors": "", "all of the largest likelihood": MAXIMUM_LIKELIHOOD}


def _int_sine(method: str, seed: int, smoke: bool = False) -> list[Mapping[str, Cell]]:
    data, name = int_sine(seed), method.partition("-")[2].partition(",")[0]
    if method.endswith(PAPER):
        return [paper_score(data, name, WIDTH)._asdict()]
    if method.endswith(LENGTHSCALES):
        return [transformed_score(data, WARPINGS[name](), covar_module=kernel_of_the_paper(WIDTH))._asdict()]
    return _score(data, method)


def _scaled(row: Row) -> dict[str, Cell]:
    """The density of outcomes over the largest one."""
    return {"nlpd_scaled": float(row["nlpd"]) - float(int_sine(int(row["seed"])).Y.max().log())}


def _means(printed: str, nlpd: str, runs: Group) -> dict[str, Cell]:
    own = PRINTED[printed].get(str(runs.names["method"]).partition(",")[0], ())
    return {
        "runs": len(runs), "rmse": runs.mean("rmse"), "rmse_sd": runs.error("rmse") * len(runs) ** 0.5,
        nlpd: runs.mean(nlpd), "nlpd_sd": runs.error(nlpd) * len(runs) ** 0.5, "coverage_90": runs.mean("coverage"),
        **dict(zip(("printed_rmse", "printed_nlpd"), own, strict=False)),
    }  # fmt: skip


INT_SINE = Experiment(
    race=Race(
        "transformed_int_sine",
        [{}],
        grid(
            method=[
                *names_of(WARPINGS), *RIVALS, *(f"BTG-{name}{PAPER}" for name in ("I", "BC")),
                *(f"BTG-{name}{LENGTHSCALES}" for name in WARPINGS),
            ]
        ),
        range(20),
        _int_sine,
        Score._fields,
        lambda runs: _means("IntSine", "nlpd_scaled", runs),
        ["over noise draws; densities of y / max y at the noise-free truth",
         "BTG, WGP and CWGP have this package's default priors, but for those with the uniform ones of the paper, or "
         "with its prior of lengthscales alone: uniform in their inverse squares, on (0, 50); or none"],
    ),
    derived=_scaled,
)  # fmt: skip
CAMEL = Experiment(
    race=Race(
        "transformed_camel",
        [{}],
        grid(method=[*names_of(("I", "SA", "L-SA")), *RIVALS]),
        range(10),
        lambda method, seed, smoke=False: _score(camel(50, 400, seed), method),
        Score._fields,
        lambda runs: _means("camel", "nlpd", runs),
        ["the six-hump camel: 50 scrambled Sobol points, 400 test points, no noise"],
    ),
)  # fmt: skip


def _score(data: Data, method: str) -> list[Mapping[str, Cell]]:
    """The score of a method, if the data allow it."""
    found = methods(data)
    return [found[method]()._asdict()] if method in found else []


def _of_set(set: str, method: str, seed: int, smoke: bool = False) -> list[Mapping[str, Cell]]:
    return _score(SETS[set](seed), method)


def _pooled(rows: Sequence[Row]) -> list[Row]:
    """Means over the warpings of every data set, of each way to choose parameters, beside the rows themselves."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        ends = row["method"].endswith(MAXIMUM_LIKELIHOOD)
        kinds = {"BTG": "all, integrated", "WGP": "all modes, with priors", "CWGP": "all modes, with priors"}
        kind = kinds.get(row["method"].partition("-")[0])
        if kind is not None:
            key = row["set"], row["seed"], "all of the largest likelihood" if ends else kind
            found.setdefault(key, []).append(float(row["nlpd"]))
    empty = dict.fromkeys(rows[0], "nan") if rows else {}
    new = [
        {**empty, "set": name, "seed": seed, "method": kind, "nlpd": str(sum(values) / len(values)), "commit": ""}
        for (name, seed, kind), values in found.items()
    ]
    return [*rows, *new]


def _gains(runs: Group) -> dict[str, Cell]:
    method = str(runs.names["method"])
    warping = method.removesuffix(MAXIMUM_LIKELIHOOD).partition("-")[2]
    against = "all, integrated" if method in POOLED else f"BTG-{warping or 'SA'}"
    mine, ours = runs.beside("nlpd", method=against)
    gain, error = mean_and_error(mine - ours)
    return {
        "runs": len(runs), "rmse": runs.mean("rmse"), "nlpd": runs.mean("nlpd"), "coverage_90": runs.mean("coverage"),
        "gain_nats": gain, "error": error,
    }  # fmt: skip


SETS_RACE = Experiment(
    race=Race(
        "transformed_sets",
        grid(set=SETS),
        grid(method=[*names_of([name for name in WARPINGS if name != "A-BC"]), *RIVALS, *POOLED]),
        range(5),
        _of_set,
        Score._fields,
        _gains,
        ["gain_nats: negative log density less that of the transformed process of the same warping, same data"],
    ),
    pooled="set",
    prepared=_pooled,
)  # fmt: skip


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
