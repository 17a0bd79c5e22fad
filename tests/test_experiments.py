"""The papers' experiments run, go on where they were, and find what can be found another way."""

import argparse
import csv
import re
from dataclasses import replace

import pytest
import torch
from botorch.models import PairwiseGP
from gpytorch.means import ZeroMean

from benchmarks._functions import find_utility
from benchmarks._observations import classification, rbf_kernel
from benchmarks._race import Contest, Group, Race, grid
from benchmarks._reporting import RESULTS
from benchmarks.experiments import RACES, constraints, draws, optimisation, posteriors
from benchmarks.experiments._models import MomentMatched, Surrogate, build
from benchmarks.experiments.optimisation import ACQUISITIONS, NUM_SAMPLES, REACH, Fitter, choose, values_at
from botorch_skewgp.observations import Binary, Preference
from botorch_skewgp.truncated.diagnostics import diagnose

BY_NAME = {race.title: race for race in RACES}


def held(race: Race, *arguments: str) -> None:
    contest, parser = Contest([race]), argparse.ArgumentParser()
    contest.add_arguments(parser)
    contest.run(parser.parse_args([*arguments, f"--threads={torch.get_num_threads()}"]))


def test_rows_of_methods_pooled_tables_and_pictures(tmp_path, capsys):
    done: list[tuple[str, int]] = []

    def run(set, method, seed):
        done.append((set, seed))
        return [{"method": method, "value": f"{seed} {seed + (method == 'b')}"} for method in "ab"]

    def columns(runs: Group) -> dict[str, float]:
        mine, theirs = runs.beside("last", method="a")
        return {"runs": len(runs), "last": runs.mean("last"), "more": float((mine - theirs).mean())}

    counting = Race(
        "some/counting", grid(set="xy"), grid(method="a"), range(3), run, ("value",), columns, pooled="set",
        derived=lambda row: {"last": float(row["value"].split()[-1])},
        plot=lambda figure, rows: figure.subplots().plot([0, 1]),
    )  # fmt: skip
    held(counting, "--seeds=2", f"--output={tmp_path}")
    assert done == [("x", 0), ("y", 0), ("x", 1), ("y", 1)]
    held(counting, "--only", "counting", f"--output={tmp_path}")
    assert done[4:] == [("x", 2), ("y", 2)]
    lines = (tmp_path / "some/counting.csv").read_text().splitlines()
    table = {row["set"] + row["method"]: row for row in csv.DictReader(line for line in lines if line[0] != "#")}
    assert list(table) == ["xa", "xb", "ya", "yb", "alla", "allb"]
    cells = [(table[name]["runs"], table[name]["last"], table[name]["more"]) for name in ("xa", "alla", "allb")]
    assert cells == [("3", "1", "nan"), ("6", "1", "nan"), ("6", "2", "1")]
    assert (tmp_path / "some/counting.png").exists()
    held(counting, "--quick")
    assert done[6:] == [("x", 0)]


def test_all_are_on_the_page():
    page = (RESULTS.parents[1] / "docs" / "experiments.md").read_text()
    assert set(re.findall("<!-- table: experiments/([a-z_]+) -->", page)) == {*BY_NAME, "claims"}


def test_safe_functions_are_valid_at_the_start():
    X = torch.linspace(-5, 5, 51, dtype=torch.float64).unsqueeze(-1)
    for number in range(5):
        g = constraints._function(number, X)
        assert g[25] >= 0
        assert torch.equal(g, constraints._function(number, X))


def test_expanders_and_maximisers():
    covariance = torch.exp(-0.5 * (torch.arange(4.0) - torch.arange(4.0).unsqueeze(-1)).square()).double()
    lower, upper = torch.tensor([[0.5, 0.0, -2.0, -3.0], [0.6, 3.0, 0.0, 3.0]], dtype=torch.float64)
    safe = lower >= 0
    assert constraints._maximisers(lower, upper, safe).tolist() == [True, True, False, False]
    less = torch.tensor([0.6, 0.4, 0.0, 3.0], dtype=torch.float64)  # the second is below what the first has for sure
    assert constraints._maximisers(lower, less, safe).tolist() == [True, False, False, False]
    # a value of 3 at the second point takes the third, whose mean is -1, to -1 + 1.5 e^(-1/2) = -.09
    assert constraints._expanders(covariance, lower, upper, safe).tolist() == [False, False, False, False]
    upper[1] = 6.0  # mean 3: a value of 6 takes the third point to -1 + 3 e^(-1/2) = .82, less 1.96 sd: -.74
    assert not constraints._expanders(covariance, lower, upper, safe).any()
    upper[1] = 12.0  # -1 + 6 e^(-1/2) = 2.64, less 1.96 sd: 1.08
    assert constraints._expanders(covariance, lower, upper, safe).tolist() == [False, True, False, False]


def test_the_classifier_of_safe_opt_learns_from_failures():
    X = torch.linspace(-5, 5, 101, dtype=torch.float64).unsqueeze(-1)
    x = X.squeeze(-1)
    g = torch.where(x > 1.5, -1.0, 2 + x)
    asked = [50, 55, 60, 40, 30]
    assert constraints._next("SafeOpt, classifier", X, g, asked) > 60  # where it has been best
    assert constraints._next("SafeOpt, classifier", X, g, [*asked, 66]) < 60  # the numbers are the same


@pytest.mark.parametrize("method", ["EP", "Laplace"])
def test_gaussian_approximations(method):
    """Against another way to them: for one label, by quadrature and by a search."""
    X = torch.zeros(1, 1, dtype=torch.float64)
    modules = {"covar_module": rbf_kernel(3.0, 1.0), "mean_module": ZeroMean()}
    model = build(method, X, [Binary(torch.tensor([1]))], **modules)
    posterior = model.posterior(X)
    f = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    log_density = torch.special.log_ndtr(f) - f.square() / 6
    density = log_density.exp()
    mean = (f * density).sum() / density.sum()
    variance = ((f - mean).square() * density).sum() / density.sum()
    if method == "Laplace":
        at, step = int(log_density.argmax()), f[1] - f[0]
        mean = f[at]
        variance = -((100 * step) ** 2) / (log_density[at + 100] - 2 * log_density[at] + log_density[at - 100])
    assert float(posterior.mean) == pytest.approx(float(mean), abs=2e-4)
    assert float(posterior.variance) == pytest.approx(float(variance), rel=1e-3)


@pytest.mark.parametrize("name", ["duels", "labels"])  # more rows than points, and as many
def test_mode_of_laplace_is_stationary(name):
    X, observations, likelihood, of_kernel, _ = posteriors._data(name, 0)
    kernel = rbf_kernel(*of_kernel)
    model = build("Laplace", X, observations, likelihood=likelihood, covar_module=kernel, mean_module=ZeroMean())
    with torch.no_grad():
        f, covariance = model.posterior(X).mean.flatten(), kernel(X).to_dense()

    def log_likelihood(f):
        if name == "duels":
            winner, loser = observations[0].pairs.mT
            return torch.special.log_ndtr((f[winner] - f[loser]) / 2**0.5).sum()
        return torch.special.log_ndtr(torch.where(observations[0].labels > 0, f, -f)).sum()

    (slope,) = torch.autograd.grad(log_likelihood(f.requires_grad_()), f)
    torch.testing.assert_close(f.detach(), covariance @ slope, rtol=1e-4, atol=1e-4)


@pytest.fixture
def seen_duels() -> tuple[torch.Tensor, Preference]:
    X = torch.rand(12, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return X, Preference(torch.tensor([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11], [0, 2], [2, 11]]))


@pytest.mark.parametrize("method", ["SkewGP", "Laplace"])
def test_hyperparameters_that_are_given_stay(seen_duels, method):
    points, seen = seen_duels
    fitter = Fitter(method, smoke=True, kernel=rbf_kernel(50.0, 0.1))
    for _ in range(2):
        model = fitter(points, [seen])
        assert model.covar_module.outputscale.item() == pytest.approx(50.0)
        assert model.covar_module.base_kernel.lengthscale.item() == pytest.approx(0.1)


def test_posteriors_of_pairwise_gp_are_its_own(seen_duels):
    points, seen = seen_duels
    model = PairwiseGP(points, seen.pairs).eval()
    X = torch.rand(3, 4, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found, expected = Surrogate(model).posterior(X), model.posterior(X)
    torch.testing.assert_close(found.mean, expected.mean, rtol=0, atol=1e-9)
    torch.testing.assert_close(found.covariance_matrix, expected.distribution.covariance_matrix, rtol=0, atol=1e-9)
    twice = Surrogate(model).posterior(torch.cat([points, points, points + 1e-9])).mean
    torch.testing.assert_close(twice[:12], twice[12:24])


@pytest.mark.parametrize("name", ["UCB", "EIIG 0.1", "improvement"])
@pytest.mark.parametrize("method", ["SkewGP", "PairwiseGP", "one has won"])
def test_a_closer_look_finds_the_best_of_all_points(seen_duels, method, name):
    points, seen = seen_duels
    best = points[0]
    if method == "one has won":  # posteriors of the others are half of a wide normal, all of it on the wrong side
        points = torch.linspace(0, 1, 41, dtype=torch.float64).unsqueeze(-1)
        best, pairs = points[29], [[29, other] for other in range(41) if other != 29]
        kernel = rbf_kernel(1000.0, 0.1)
        model = build("SkewGP", points, [Preference(pairs)], num_draws=64, covar_module=kernel).eval()
    else:
        model = build(method, points, [seen], num_draws=64).eval()
    if method == "PairwiseGP":
        model = Surrogate(model)
    X = torch.rand(1000, len(best), generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    with torch.no_grad():
        values = values_at(ACQUISITIONS[name](model, best, 3, NUM_SAMPLES), X)
    assert choose(name, model, best, 3, X) == int(values.argmax())


def test_moments_of_a_normal_in_the_place_of_a_posterior(seen_duels):
    points, seen = seen_duels
    model = build("SkewGP", points, [seen], num_draws=64)
    posterior, normal = model.posterior(points[:3]), MomentMatched(model).posterior(points[:3])
    torch.testing.assert_close(normal.mean, posterior.mean)
    torch.testing.assert_close(normal.covariance_matrix, posterior.covariance_matrix)


def test_sasenas_optimum_is_that_of_the_paper():
    best = torch.tensor([2.7450, 2.3523], dtype=torch.float64) / 5
    assert float(constraints.value(best)) == pytest.approx(1.1743, abs=2e-4)
    assert float(constraints.excess(best)) == pytest.approx(0, abs=1e-4)


def test_functions_of_the_papers_have_their_optimum_in_the_unit_cube():
    for name in optimisation.FIRST_DUELS:
        function = find_utility(name, REACH.get(name))
        X = torch.rand(2000, function.dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        assert function.evaluate(X).max() <= function.best + 1e-6


@pytest.mark.parametrize("name", [path.stem for path in sorted((RESULTS / "experiments").glob("*_runs.csv"))])
def test_tables_of_part_of_the_cases(name):
    race = BY_NAME[name.removesuffix("_runs")]
    with (RESULTS / "experiments" / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(line for line in file if line[0] != "#"))
    keys = (*race.cases[0], "seed")
    of_first = [all(row[key] == rows[0][key] for key in keys) for row in rows]
    first = [row for row, is_first in zip(rows, of_first, strict=True) if is_first]
    others = [row for row, is_first in zip(rows, of_first, strict=True) if not is_first]
    for some in (rows, first, others):
        assert not some or race.tables(some)[0].rows


@pytest.mark.slow
def test_rows_of_other_samplers_have_the_moments_of_ours():
    """Means and second moments of `E[h | u]`, in standard errors of both."""
    distribution = classification(12)
    gain = torch.cholesky_solve(distribution.prior.covariance, distribution.gamma_cholesky)
    moments, errors = [], []
    samplers = {draws._ours: 16_000, draws._hamiltonian: 16_000, draws._elliptical_slice: 4000}
    for sample, num_draws in samplers.items():
        h = sample(distribution, num_draws) @ gain
        both = torch.cat([h, h.square()], dim=-1)
        moments.append(both.mean((0, 1)))
        errors.append(both.std((0, 1)) / diagnose(both).bulk_effective_size.sqrt())
    for moment, error in zip(moments[1:], errors[1:], strict=True):
        assert ((moment - moments[0]).abs() < 3.5 * (error.square() + errors[0].square()).sqrt()).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_NAME)
def test_experiments_run(name, capsys):
    held(BY_NAME[name], "--quick")
    table, said = capsys.readouterr()
    assert f"{name}: " in said
    assert "method" in table
    if name == "kernels":  # the last case has not all measures
        held(replace(BY_NAME[name], cases=BY_NAME[name].cases[-1:]), "--quick")
