"""The founding papers' claims, each beside what the stored runs say of it: in the paper's measure and by its test, then
in ours where that is another.

`experiments/claims.csv` has a row for each printed claim. `python -m benchmarks claims` reads the stored runs and
writes `benchmarks/results/experiments/claims.csv`, from which the page's table, its numbers and its verdicts are made.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks._reporting import RESULTS, Table
from benchmarks.experiments.optimisation import FLOOR, WITH_NUMBERS

CLAIMS = Path(__file__).with_name("experiments") / "claims.csv"
OF_UNIFIED = ("cosine", "camel", "langermann", "colville", "rosenbrock5", "hartmann6")
OF_PREFERENTIAL = ("forrester", "camel", "goldstein", "levy2", "rosenbrock5", "hartmann6")
ROPE, NUM_SAMPLES = 0.01, 50_000  # of the Bayesian signed-rank test
PROBABLE = 0.95  # of one of its three outcomes, to be decided
MOST_SHOWN = 3  # values in a cell; of more the numbers that are ahead, level and behind
OF_PAPER = ", lengthscales of the paper"  # at the end of the names of methods
WARPINGS = ("I", "A", "SA", "BC", "L-SA", "A-BC")


class Value(NamedTuple):
    """A measured value.

    Args:
        name: What it is of.
        value: The value, on average.
        error: Its standard error.
    """

    name: str
    value: float
    error: float


class Finding(NamedTuple):
    """What the runs say of a claim.

    Args:
        text: The values.
        verdict: By the test: "holds", "level", "in part, ...", "does not hold" or "the reverse holds".
    """

    text: str
    verdict: str


class Answer(NamedTuple):
    """A claim's findings.

    Args:
        finding: In the paper's measure and by its test.
        measure: Ours, where it is another one.
        ours: The finding in it, by the same test.
    """

    finding: Finding
    measure: str = ""
    ours: Finding | None = None


# Stored runs


class Stored:
    """Stored runs and tables, by their names below a folder of results; `commits` are those of the rows used."""

    def __init__(self, folder: Path = RESULTS) -> None:
        self.folder = folder
        self.commits: dict[str, None] = {}

    def read(self, name: str) -> pd.DataFrame:
        """All rows of a file."""
        return _read(self.folder / f"{name}.csv").copy()

    def experiment(self, name: str, **columns: str) -> pd.DataFrame:
        """The runs of an experiment that have these values in columns."""
        frame = self.read(f"experiments/{name}_runs")
        for column, value in columns.items():
            frame = frame[frame[column] == value]
        self.commits |= dict.fromkeys(commit for text in frame["commit"] for commit in str(text).split())
        return frame


@cache
def _read(path: Path) -> pd.DataFrame:
    """All rows of a file; the regret, a trace, also as its mean, its end and the logarithm of its end."""
    frame = pd.read_csv(path, comment="#")
    if "regret" in frame and not pd.api.types.is_numeric_dtype(frame["regret"]):
        traces = frame["regret"].map(lambda text: np.array(text.split(), dtype=float))
        frame["mean_regret"] = traces.map(np.mean)
        frame["final"] = traces.map(lambda trace: trace[-1])
        frame["log10"] = np.log10(frame["final"].clip(lower=FLOOR))
    return frame


def mean_of(name: str, values: pd.Series) -> Value:
    """The mean of runs and its standard error."""
    return Value(name, float(values.mean()), float(values.std() / math.sqrt(len(values))))


def paired(frame: pd.DataFrame, measure: str, method: str, rival: str, name: str = "") -> Value:
    """The mean difference of a measure between two methods in the runs that both have, and its standard error."""
    keys = [column for column in ("function", "set", "data", "classes", "kernel", "n", "seed") if column in frame]
    ours, theirs = (frame[frame["method"] == which].set_index(keys)[measure] for which in (method, rival))
    return mean_of(name, (ours - theirs).dropna())


def paired_by(
    frame: pd.DataFrame, column: str, values: Iterable[str | int], measure: str, method: str, rival: str
) -> list[Value]:
    """`paired` for each of some values of a column."""
    return [paired(frame[frame[column] == value], measure, method, rival, str(value)) for value in values]


# Tests


def beyond(values: Sequence[Value], sign: int, bound: float = 0.0) -> Finding:
    """Whether values are beyond a bound by two standard errors, on the side of the sign, every one of them."""
    sides = [side(value, sign, bound) for value in values]
    ahead, behind = sides.count(1), sides.count(-1)
    level = len(sides) - ahead - behind
    if ahead == len(sides):
        verdict = "holds"
    elif behind == len(sides):
        verdict = "the reverse holds"
    elif ahead:
        verdict = f"in part, {ahead} of {len(sides)}"
    else:
        verdict = "level" if not behind else "does not hold"
    if len(values) <= MOST_SHOWN:
        return Finding(shown(values), verdict)
    return Finding(f"ahead in {ahead}, level in {level}, behind in {behind}", verdict)


def side(value: Value, sign: int, bound: float = 0.0) -> int:
    """1 if a value is beyond a bound by two standard errors on the side of the sign, -1 on the other side, else 0."""
    excess = sign * (value.value - bound)
    if excess > 2 * value.error:
        return 1
    return -1 if excess < -2 * value.error else 0


def within(values: Sequence[Value], errors: float = 2.0) -> Finding:
    """Whether every value is within some errors of zero."""
    near = sum(abs(value.value) <= errors * value.error for value in values)
    verdict = "holds" if near == len(values) else f"in part, {near} of {len(values)}" if near else "does not hold"
    text = shown(values) if len(values) <= MOST_SHOWN else f"within in {near} of {len(values)}"
    return Finding(text, verdict)


def signed_rank(differences: np.ndarray, seed: int = 0) -> Finding:
    """The Bayesian signed-rank test of Benavoli et al. (Journal of Machine Learning Research 18, 2017, section 4.2.2).

    A Dirichlet process with prior strength one at zero: weights of the differences and of a zero are Dirichlet, and the
    three outcomes have the weights of pairs whose mean is below, within or above the rope.
    """
    z = np.concatenate([[0.0], differences])
    means = 0.5 * (z[:, None] + z)
    outcomes = np.stack([means < -ROPE, np.abs(means) <= ROPE, means > ROPE]).astype(float)
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(z)), NUM_SAMPLES)
    shares = np.einsum("si,oij,sj->so", weights, outcomes, weights)
    worse, level, better = np.bincount(shares.argmax(-1), minlength=3) / NUM_SAMPLES
    text = f"better {better:.3f}, practically equivalent {level:.3f}, worse {worse:.3f}"
    if better > PROBABLE:
        return Finding(text, "holds")
    if level > PROBABLE:
        return Finding(text, "level")
    return Finding(text, "the reverse holds" if worse > PROBABLE else "undecided")


def shown(values: Sequence[Value]) -> str:
    """Values with their errors, in as many digits as the errors have two of."""
    return "; ".join(f"{value.name} {_with_error(value)}".strip() for value in values)


def _with_error(value: Value) -> str:
    if not value.error or not math.isfinite(value.error):
        return f"{value.value:.3g}"
    digits = min(max(1 - math.floor(math.log10(value.error)), 0), 6)
    return f"{value.value:.{digits}f} ± {value.error:.{digits}f}"


# Draws and posteriors


def lin_ess_converges(stored: Stored) -> Answer:
    runs = stored.experiment("sampling_time", method="LIN-ESS")
    largest = runs.groupby("n")["r_hat"].max()
    finding = Finding(
        f"{largest.min():.2f} to {largest.max():.2f}", "holds" if largest.max() < 1.2 else "does not hold"
    )
    size = runs["effective_size"]
    ours = Finding(f"{size.min():.0f} to {size.max():.0f}", finding.verdict)
    return Answer(finding, "effective draws of 12,000", ours)


def seconds_of_draws(stored: Stored, race: str, rival: str, least: int = 0) -> Answer:
    runs = stored.experiment(race)
    sizes = [
        n for n in sorted(runs["n"].unique()) if n > least and ((runs["n"] == n) & (runs["method"] == rival)).any()
    ]
    runs["seconds_an_effective_draw"] = runs["seconds"] / runs["effective_size"]
    finding = beyond(paired_by(runs, "n", sizes, "seconds", "LIN-ESS", rival), -1)
    if rival == "EP":
        last = paired_by(runs, "n", sizes[-1:], "seconds", "LIN-ESS", rival)
        return Answer(Finding(f"{finding.text}; at {sizes[-1]} {shown([last[0]._replace(name='')])}", finding.verdict))
    ours = beyond(paired_by(runs, "n", sizes, "seconds_an_effective_draw", "LIN-ESS", rival), -1)
    return Answer(finding, "seconds of an effective draw, less those of slices", ours)


def of_posterior(stored: Stored, data: str, method: str, measure: str, bound: float) -> Answer:
    runs = stored.experiment("posteriors", data=data, method=method)
    finding = beyond([mean_of("", runs[measure])], 1, bound)
    if measure == "skewness":
        return Answer(finding)
    return Answer(
        finding,
        "largest difference of upper ends, in standard deviations",
        beyond([mean_of("", runs["upper"])], 1, bound),
    )


# Classification


def pseudo_point(stored: Stored) -> Answer:
    runs = stored.experiment("pseudo_points")
    evidence, score = (paired(runs, measure, "learned", "none") for measure in ("evidence", "score"))
    return Answer(beyond([evidence], 1), "information score, bits, more than without one", beyond([score], 1))


def accuracy(stored: Stored, kernel: str) -> Answer:
    ten, eights = (stored.experiment("kernels", kernel=kernel, classes=classes) for classes in ("all", "eights"))
    finding, ours = (beyond([paired(runs, "accuracy", "s = 2", "EP")], 1) for runs in (ten, eights))
    return Answer(finding, "accuracy of eights against the rest, more than EP's", ours)


def arcsine(stored: Stored) -> Answer:
    findings = []
    for classes in ("all", "eights"):
        runs = stored.experiment("kernels", classes=classes, method="EP").drop(columns="method")
        runs = runs.rename(columns={"kernel": "method"})
        findings.append(beyond([paired(runs, "accuracy", "arcsine", "RBF")], 1))
    return Answer(findings[0], "accuracy of eights against the rest, more than with RBF", findings[1])


def of_eights(stored: Stored, measure: str, sign: int) -> Answer:
    values = [
        paired(stored.experiment("kernels", classes="eights", kernel=kernel), measure, "s = 2", "EP", kernel)
        for kernel in ("RBF", "arcsine")
    ]
    return Answer(beyond(values, sign))


def scores(stored: Stored, method: str, rival: str) -> Answer:
    runs = stored.experiment("information_scores")
    values = paired_by(runs, "set", runs["set"].unique(), "score", method, rival)
    differences = np.array([value.value for value in values])
    ours = Finding(f"p = {stats.wilcoxon(differences).pvalue:.2g}; {shown([mean_of('', pd.Series(differences))])}", "")
    finding = signed_rank(differences)
    sure = stats.wilcoxon(differences).pvalue < 1 - PROBABLE
    direction = "holds" if differences.mean() > 0 else "the reverse holds"
    return Answer(finding, "difference, bits; Wilcoxon's test", ours._replace(verdict=direction if sure else "level"))


def scores_skewness(stored: Stored) -> Answer:
    runs = stored.experiment("information_scores")
    sets = runs["set"].unique()
    gains = [value.value for value in paired_by(runs, "set", sets, "score", "s = 0", "EP")]
    exact = runs[runs["method"] == "s = 0"].groupby("set")

    def correlated(measure: str) -> Finding:
        result = stats.spearmanr([exact.get_group(name)[measure].mean() for name in sets], gains)
        verdict = "holds" if result.pvalue < 1 - PROBABLE and result.statistic > 0 else "level"
        return Finding(f"{result.statistic:.2f}, p = {result.pvalue:.2g}", verdict)

    return Answer(correlated("largest_skewness"), "rank correlation with the mean skewness", correlated("skewness"))


def learning(stored: Stored, measure: str, rival: str) -> Answer:
    runs = stored.experiment("active_learning")
    runs["accuracy"] = runs["accuracy"].map(lambda text: np.mean([float(value) for value in text.split()]))
    finding = beyond(paired_by(runs, "set", runs["set"].unique(), measure, "SkewGP", rival), 1)
    return Answer(finding, "the same, over all sets", beyond([paired(runs, measure, "SkewGP", rival)], 1))


# Optimisation


def safe(stored: Stored, measure: str) -> Answer:
    runs = stored.experiment("safe_optimisation")
    difference = paired(runs, measure, "SkewGP", "SafeOpt, classifier")
    if measure == "violations":
        totals = [int(runs[runs["method"] == name][measure].sum()) for name in ("SkewGP", "SafeOpt, classifier")]
        finding = within([difference])
        return Answer(Finding(f"{finding.text}; {totals[0]} beside {totals[1]} of 3,000", finding.verdict))
    return Answer(
        beyond([difference], -1),
        "regret at the end",
        beyond([paired(runs, "final", "SkewGP", "SafeOpt, classifier")], -1),
    )


def fixed(stored: Stored) -> Answer:
    return both_regrets([stored.experiment("fixed_hyperparameters")], ["SkewGP"], ["Laplace"])


def both_regrets(frames: Sequence[pd.DataFrame], methods: Sequence[str], rivals: Sequence[str]) -> Answer:
    """The mean regret at the end, in pairs; and its decimal logarithm."""
    findings = [
        beyond([paired(frame, measure, *pair) for frame in frames for pair in zip(methods, rivals, strict=True)], -1)
        for measure in ("final", "log10")
    ]
    return Answer(findings[0], "log10 of the regret, the same pairs", findings[1])


def duels(stored: Stored, functions: Sequence[str], rival: str) -> Answer:
    frames = [stored.experiment("preferential_optimisation", function=name) for name in functions]
    criteria = ("UCB", "EIIG 0.1")
    return both_regrets(frames, [f"SkewGP, {name}" for name in criteria], [f"{rival}, {name}" for name in criteria])


def duels_seconds(stored: Stored) -> Answer:
    runs = stored.experiment("preferential_optimisation")
    return Answer(beyond([paired(runs, "seconds_per_step", "SkewGP, UCB", "PairwiseGP, UCB")], -1))


def mixed(stored: Stored, rival: str) -> Answer:
    frames = [stored.experiment("mixed_optimisation", function=name) for name in WITH_NUMBERS]
    return both_regrets(frames, ["SkewGP"], [rival])


def one_function(stored: Stored) -> Answer:
    runs = stored.experiment("unknown_constraint")
    criteria = ("UCB", "EIIG 0.1", "Thompson")
    findings = [
        beyond([paired(runs, measure, f"one function, {name}", f"penalty, {name}", name) for name in criteria], -1)
        for measure in ("final", "log10")
    ]
    return Answer(findings[0], "log10 of the regret, less the penalty's", findings[1])


# Transformed processes: stored tables


def beside_printed(stored: Stored, table: str, measure: str, suffix: str, printed: Mapping[str, float]) -> Answer:
    """Differences from printed values by warping, whose errors are standard deviations over draws."""
    rows = stored.read(table).set_index("method")
    deviation = f"{measure.removesuffix('_scaled')}_sd"
    methods = {name: f"BTG-{name}{suffix}" for name in printed}
    values = [
        Value(name, rows[measure][method] - printed[name], rows[deviation][method]) for name, method in methods.items()
    ]
    return Answer(within(values))


def camel_order(stored: Stored) -> Answer:
    runs = stored.read("transformed_camel_runs")
    return Answer(beyond([paired(runs, "rmse", "BTG-L-SA", "CWGP-L-SA, maximum likelihood")], -1))


def integrating(stored: Stored) -> Answer:
    runs = stored.read("transformed_sets_runs").set_index(["set", "seed", "method"])["nlpd"].unstack()
    rivals = {f"BTG-{name}": f"{'CWGP' if '-' in name else 'WGP'}-{name}, maximum likelihood" for name in WARPINGS}
    differences = pd.DataFrame(
        {method: runs[method] - runs[rival] for method, rival in rivals.items() if rival in runs}
    )
    values = [
        mean_of(f"{name}, {method}", of_set[method].dropna())
        for name, of_set in differences.groupby("set")
        for method in differences
        if of_set[method].count() > 1
    ]
    # warpings share the draws of a set, so that the error is that of the draws' means over warpings
    over_draws = mean_of("", differences.mean(axis=1).dropna())
    return Answer(beyond(values, -1), "the same, over all draws of all sets", beyond([over_draws], -1))


def hull(stored: Stored) -> Answer:
    rows = stored.read("transformed_bounds").set_index("bounds")["evaluations_per_quantile"]
    share = rows["hull"] / rows["none"]
    return Answer(Finding(f"{share:.2f}", "holds" if share <= 0.5 else "does not hold"))


def leave_one_out(stored: Stored) -> Answer:
    rows = stored.read("transformed_leave_one_out").set_index("n")
    slopes = rows["slope_closed_form"][4000], rows["slope_refits"][4000]
    holds = abs(slopes[0] - 3) < 0.5 and abs(slopes[1] - 4) < 0.5
    return Answer(Finding(f"{slopes[0]:.1f} and {slopes[1]:.1f}", "holds" if holds else "does not hold"))


def sparse_grids(stored: Stored) -> Answer:
    rows = stored.read("transformed_figure_3").set_index(["level", "rule"])["evidence"].abs()
    differences = [rows[4, rule] - rows[4, "QMC, adapted"] for rule in ("Genz-Keister, Laplace", "Genz-Keister, t")]
    text = (
        f"nested rules {differences[0]:+.2f}, in Student t coordinates {differences[1]:+.2f}; Gauss-Legendre is refused"
    )
    return Answer(Finding(text, "holds" if max(differences) < 0 else "does not hold"))


OF_CLAIMS: dict[str, Callable[[Stored], Answer]] = {
    "lin_ess_converges": lin_ess_converges,
    "lin_ess_beside_ep": partial(seconds_of_draws, race="sampling_time", rival="EP", least=2200),
    "lin_ess_beside_slices": partial(seconds_of_draws, race="draws_against_size", rival="elliptical slice"),
    "skewed_duels": partial(of_posterior, data="duels", method="SkewGP", measure="skewness", bound=0.1),
    "laplace_duels": partial(of_posterior, data="duels", method="Laplace", measure="mean", bound=0.5),
    "ep_duels": partial(of_posterior, data="duels", method="EP", measure="mean", bound=0.5),
    "skewed_validity": partial(
        of_posterior, data="numbers and validity", method="SkewGP", measure="skewness", bound=0.1
    ),
    "laplace_validity": partial(of_posterior, data="numbers and validity", method="Laplace", measure="mean", bound=0.5),
    "pseudo_point": pseudo_point,
    "skew_prior_rbf": partial(accuracy, kernel="RBF"),
    "skew_prior_arcsine": partial(accuracy, kernel="arcsine"),
    "arcsine": arcsine,
    "second_order": partial(of_eights, measure="deviation_wrong", sign=1),
    "skew_prior_seconds": partial(of_eights, measure="seconds", sign=-1),
    "scores_laplace": partial(scores, method="EP", rival="Laplace"),
    "scores_exact": partial(scores, method="s = 0", rival="EP"),
    "scores_skew_prior": partial(scores, method="s = 2", rival="EP"),
    "scores_skewness": scores_skewness,
    "violations": partial(safe, measure="violations"),
    "safe_regret": partial(safe, measure="mean_regret"),
    "fixed_laplace": fixed,
    "duels_laplace_unified": partial(duels, functions=OF_UNIFIED, rival="PairwiseGP"),
    "duels_ep_unified": partial(duels, functions=OF_UNIFIED, rival="EP"),
    "duels_laplace_preferential": partial(duels, functions=OF_PREFERENTIAL, rival="PairwiseGP"),
    "duels_seconds": duels_seconds,
    "mixed_laplace": partial(mixed, rival="Laplace"),
    "mixed_ep": partial(mixed, rival="EP"),
    "mixed_duels": partial(mixed, rival="SkewGP, duels only"),
    "one_function": one_function,
    "labels_laplace": partial(learning, measure="accuracy", rival="Laplace"),
    "labels_ep": partial(learning, measure="accuracy", rival="EP"),
    "diverse_laplace": partial(learning, measure="diversity", rival="Laplace"),
    "diverse_ep": partial(learning, measure="diversity", rival="EP"),
    "int_sine": partial(
        beside_printed, table="transformed_int_sine", measure="rmse", suffix=OF_PAPER,
        printed={"I": 0.169, "A": 0.168, "SA": 0.165, "BC": 0.170, "L-SA": 0.145, "A-BC": 0.159},
    ),
    "int_sine_density": partial(
        beside_printed, table="transformed_int_sine", measure="nlpd_scaled", suffix=OF_PAPER,
        printed={"I": -1.429, "A": -1.443, "SA": -1.759, "BC": -1.439, "L-SA": -1.781, "A-BC": -1.516},
    ),
    "camel": partial(
        beside_printed, table="transformed_camel", measure="rmse", suffix="",
        printed={"I": 1.820, "SA": 1.801, "L-SA": 1.673},
    ),
    "camel_order": camel_order,
    "integrating": integrating,
    "hull": hull,
    "leave_one_out": leave_one_out,
    "sparse_grids": sparse_grids,
}  # fmt: skip


def claims() -> list[dict[str, str]]:
    """The rows of printed claims."""
    with CLAIMS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def answered(claim: dict[str, str], folder: Path = RESULTS) -> dict[str, str]:
    """A claim's row with what stored runs say of it."""
    stored = Stored(folder)
    answer = OF_CLAIMS[claim["claim"]](stored)
    ours = answer.ours or Finding("", "")
    return {
        **claim, "value": answer.finding.text, "verdict": answer.finding.verdict, "our_measure": answer.measure,
        "our_value": ours.text, "our_verdict": ours.verdict, "commit": " ".join(stored.commits),
    }  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(options: argparse.Namespace) -> None:
    table = Table("experiments/claims", ["of stored runs; errors are standard errors, of paired differences"], [])
    table.rows = [dict(answered(claim)) for claim in claims()]
    table.store(RESULTS)
    for row in table.rows:
        print("{claim}: {value}: {verdict}; {our_measure} {our_value}: {our_verdict}".format(**row))
