"""What is drawn, read back from the axes, is what the model says; nothing else changes."""

import matplotlib as mpl
import numpy as np
import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import PairwiseGP, SingleTaskGP
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Log
from matplotlib import pyplot
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from scipy import stats

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import LogProbabilityOfValidity
from botorch_skewgp.checking import judge_summary
from botorch_skewgp.models import FullyBayesianSkewGP
from botorch_skewgp.observations import (
    Binary,
    Censored,
    Choice,
    LabelPreference,
    Numeric,
    Ordinal,
    Preference,
    Tie,
    Validity,
)
from botorch_skewgp.plots import (
    COLORS,
    plot_map,
    plot_marginal,
    plot_posterior,
    plot_slices,
    plot_tastes,
    plot_threshold,
)
from botorch_skewgp.thresholds import threshold
from botorch_skewgp.truncated.draws import DrawSettings

pytestmark = pytest.mark.filterwarnings(
    "ignore:Data :botorch.exceptions.InputDataWarning",  # inputs and outcomes that are not scaled
    "ignore::botorch_skewgp.exceptions.FewAnswersWarning",
)

pyplot.switch_backend("agg")  # no windows
SETTINGS = DrawSettings(num_draws=256)
PAIRS = torch.tensor([[1, 0], [1, 2], [3, 2], [3, 4]])


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


LINE, SQUARE = tensor([[-1.0], [2.0]]), tensor([[0.0, -1.0], [1.0, 2.0]])
POINTS = tensor([-0.8, 0.0, 0.7, 1.2, 1.9]).unsqueeze(-1)
POINTS_2D = tensor([[0.1, -0.5], [0.4, 1.5], [0.9, 0.2], [0.6, 0.8], [0.3, -0.9]])


def skew_gp(points, observations):
    """A model of points that lie in `LINE` or `SQUARE`."""
    bounds = LINE if points.shape[-1] == 1 else SQUARE
    transform = Normalize(points.shape[-1], bounds=bounds)
    return SkewGP(points, observations, input_transform=transform, draw_settings=SETTINGS)


def sharp(model):
    """A scale at which duels are informative, hence posteriors skewed."""
    model.covar_module.outputscale = 20.0
    model.covar_module.base_kernel.lengthscale = 0.5 / 3
    return model


@pytest.fixture(scope="module")
def line():
    return sharp(skew_gp(POINTS, Preference(PAIRS)))


@pytest.fixture(scope="module")
def square():
    return sharp(skew_gp(POINTS_2D, Preference(PAIRS)))


@pytest.fixture(scope="module")
def validity():
    worked = torch.tensor([True, True, False, True, False])
    return skew_gp(POINTS_2D, Validity(worked))


@pytest.fixture(scope="module")
def numbers():
    return SingleTaskGP(POINTS, torch.sin(3 * POINTS), tensor([[0.01]] * 5))


@pytest.fixture(autouse=True)
def untouched():
    """No picture changes matplotlib's parameters; figures of pyplot are closed afterwards."""
    before = dict(mpl.rcParams)
    yield
    assert dict(mpl.rcParams) == before
    pyplot.close("all")


def labelled(ax, label):
    """The one line or collection of a label."""
    (found,) = [artist for artist in ax.get_children() if artist.get_label() == label]
    return found


def labels(ax):
    return ax.get_legend_handles_labels()[1]


def edges(band, x):
    """Lower and upper edge of a filled band on the grid it was drawn on."""
    vertices = band.get_paths()[0].vertices
    n = len(x)  # a corner, the lower edge, a corner, the upper edge backwards, the first corner again
    lower, upper = vertices[1 : n + 1], vertices[n + 2 : 2 * n + 2][::-1]
    assert np.allclose(lower[:, 0], x)
    assert np.allclose(upper[:, 0], x)
    return lower[:, 1], upper[:, 1]


def grid(ax):
    """Points and values of a map."""
    mesh = ax.collections[0]
    z = np.asarray(mesh.get_array()).reshape(mesh.get_coordinates().shape[:2])
    return torch.from_numpy(mesh.get_coordinates().reshape(-1, 2).copy()), torch.from_numpy(z.reshape(-1).copy())


class TestPosterior:
    def test_mean_and_bands_are_the_posteriors(self, line):
        ax = plot_posterior(line, LINE, probabilities=(0.9, 0.5), resolution=31)
        x, mean = labelled(ax, "mean").get_data()
        posterior = line.posterior(tensor(x).unsqueeze(-1))
        assert x[0] == -1
        assert x[-1] == 2
        assert len(x) == 31
        np.testing.assert_allclose(mean, posterior.mean.squeeze(-1).detach())
        for probability in (0.5, 0.9):
            drawn = edges(labelled(ax, f"{100 * probability:g} %"), x)
            levels = tensor([0.5 - probability / 2, 0.5 + probability / 2])
            np.testing.assert_allclose(drawn, posterior.quantile(levels).squeeze(-1).detach())
        narrow, wide = labelled(ax, "50 %"), labelled(ax, "90 %")
        assert narrow.get_zorder() > wide.get_zorder()
        assert sum(to_rgb(to_hex(narrow.get_facecolor()[0]))) < sum(to_rgb(to_hex(wide.get_facecolor()[0])))

    def test_gaussian_has_the_matched_moments(self, line):
        ax = plot_posterior(line, LINE, probabilities=(0.8,), gaussian=True, resolution=11)
        x, lower = labelled(ax, "80 %, Gaussian").get_data()
        distribution = line.posterior(tensor(x).unsqueeze(-1)).moment_matched()
        mean, sd = distribution.mean.squeeze(-1).detach(), distribution.variance.sqrt().squeeze(-1).detach()
        np.testing.assert_allclose(lower, mean + stats.norm.ppf(0.1) * sd, rtol=1e-6)
        skewed, _ = edges(labelled(ax, "80 %"), x)
        assert np.abs(skewed - lower).max() > 0.01  # else the two could be mistaken for each other

    def test_botorch_model_has_gaussian_bands(self, numbers):
        ax = plot_posterior(numbers, LINE.float(), probabilities=(0.95,), resolution=11)
        x, mean = labelled(ax, "mean").get_data()
        posterior = numbers.posterior(tensor(x).unsqueeze(-1))
        lower, upper = edges(labelled(ax, "95 %"), x)
        sd = posterior.variance.sqrt().squeeze(-1).detach().numpy()
        np.testing.assert_allclose(lower, mean + stats.norm.ppf(0.025) * sd, rtol=1e-6)
        np.testing.assert_allclose(upper, mean + stats.norm.ppf(0.975) * sd, rtol=1e-6)

    def test_a_second_model_on_the_same_axes(self, line, numbers):
        ax = Figure().subplots()
        assert plot_posterior(line, LINE, ax=ax) is ax
        plot_posterior(numbers, LINE, ax=ax, probabilities=(), color=COLORS[1])
        assert [entry.get_color() for entry in ax.lines if entry.get_label() == "mean"] == [COLORS[0], COLORS[1]]

    def test_several_outputs_are_refused(self):
        model = skew_gp(POINTS, LabelPreference.from_classes(torch.tensor([0, 1, 2, 1, 0]), 3))
        with pytest.raises(UnsupportedError, match="3 outputs; draw one"):
            plot_posterior(model, LINE)

    def test_errors(self, line, square):
        with pytest.raises(UnsupportedError, match="one input; got 2"):
            plot_posterior(square, SQUARE)
        with pytest.raises(InputDataError, match="2 x 2, a column for each input"):
            plot_posterior(square, LINE)
        with pytest.raises(InputDataError, match="lower ones first"):
            plot_posterior(line, LINE.squeeze(-1))
        with pytest.raises(InputDataError, match="lower ones not above upper"):
            plot_posterior(line, LINE.flip(0))
        with pytest.raises(InputDataError, match=r"probabilities must be strictly between 0 and 1"):
            plot_posterior(line, LINE, probabilities=(0.5, 1.0))
        batch = SingleTaskGP(POINTS.expand(2, 5, 1), torch.sin(POINTS).expand(2, 5, 1))
        with pytest.raises(UnsupportedError, match="draw one of its members"):
            plot_posterior(batch, LINE)

    def test_ensemble_is_the_mixture_of_its_members(self, line):
        other = skew_gp(POINTS, Preference(PAIRS))
        other.covar_module.outputscale = 1000.0
        members = [line, other]
        ax = plot_posterior(FullyBayesianSkewGP(members), LINE, probabilities=(0.5,))
        x, _ = labelled(ax, "mean").get_data()
        lower, _ = edges(labelled(ax, "50 %"), x)
        X = tensor(x).reshape(-1, 1)
        below = [m.posterior(X).cdf(tensor(lower).reshape(-1, 1)).detach() for m in members]
        np.testing.assert_allclose(torch.stack(below).mean(0).flatten(), 0.25, rtol=1e-6)
        assert abs(float((below[0] - below[1]).abs().max())) > 0.05

    def test_posterior_without_quantiles_is_refused(self):
        model = SingleTaskGP(POINTS, POINTS.exp(), tensor([[0.01]] * 5), outcome_transform=Log())
        with pytest.raises(UnsupportedError, match="TransformedPosterior has no quantile"):
            plot_posterior(model, LINE)


class TestData:
    def test_kinds(self):
        model = skew_gp(
            POINTS,
            [
                Numeric([0.4, 0.1], index=[0, 2]),
                Censored([-torch.inf, 0.3], [0.2, torch.inf], index=[1, 3]),
                Validity([True, False, True]),
                Ordinal([1], 2, index=[4]),
                Choice([[4, 0, 1]]),
                Tie([[2, 3]]),
            ],
        )
        ax = plot_posterior(model, LINE)
        x = POINTS.squeeze(-1).tolist()
        expected = {
            "number": ([x[0], x[2]], [0.4, 0.1]),
            "at most": ([x[1]], [0.2]),
            "at least": ([x[3]], [0.3]),
        }
        for label, data in expected.items():
            np.testing.assert_allclose(labelled(ax, label).get_data(), data)
        where = {
            "valid": [x[0], x[2]],
            "not valid": [x[1]],
            "grade 1": [x[4]],
            "winner": [x[4], x[4]],
            "loser": [x[0], x[1]],
            "tie": [x[2], x[3]],
        }
        lowest = min(edges(labelled(ax, "95 %"), labelled(ax, "mean").get_xdata())[0])
        for label, positions in where.items():
            marks = labelled(ax, label)
            np.testing.assert_allclose(np.sort(marks.get_xdata()), sorted(positions))
            assert (marks.get_ydata() < lowest).all()

    def test_each_duel_is_a_line_of_its_own(self, line):
        ax = plot_posterior(line, LINE)
        winners, losers = labelled(ax, "winner"), labelled(ax, "loser")
        np.testing.assert_allclose(winners.get_xdata(), POINTS[PAIRS[:, 0], 0])
        np.testing.assert_allclose(losers.get_xdata(), POINTS[PAIRS[:, 1], 0])
        np.testing.assert_allclose(winners.get_ydata(), losers.get_ydata())
        assert len(set(winners.get_ydata())) == len(PAIRS)

    def test_can_be_left_out(self, line):
        assert labels(plot_posterior(line, LINE, data=False)) == ["mean", "50 %", "80 %", "95 %"]


class TestSlices:
    def test_each_panel_is_the_posterior_along_its_input(self, square):
        point = tensor([0.3, 1.1])
        panels = plot_slices(square, SQUARE, point, probabilities=(0.9,), resolution=7)
        assert panels.shape == (2,)
        for i, ax in enumerate(panels):
            x, mean = labelled(ax, "mean").get_data()
            np.testing.assert_allclose(x, np.linspace(*SQUARE[:, i].tolist(), 7))
            X = point.repeat(7, 1)
            X[:, i] = tensor(x)
            posterior = square.posterior(X)
            np.testing.assert_allclose(mean, posterior.mean.squeeze(-1).detach())
            levels = posterior.quantile(tensor([0.05, 0.95])).squeeze(-1).detach()
            np.testing.assert_allclose(edges(labelled(ax, "90 %"), x), levels)
            assert labelled(ax, "the point").get_xdata()[0] == point[i]

    def test_given_axes(self, square):
        given = Figure().subplots(1, 2)
        panels = plot_slices(square, SQUARE, POINTS_2D[0], ax=given)
        assert list(panels) == list(given)

    def test_errors(self, square):
        with pytest.raises(InputDataError, match="point must have 2 elements"):
            plot_slices(square, SQUARE, POINTS[0])
        with pytest.raises(InputDataError, match="ax must hold 2 axes"):
            plot_slices(square, SQUARE, POINTS_2D[0], ax=Figure().subplots())


class TestMarginal:
    def test_densities(self, line, numbers):
        point = tensor([0.7])
        ax = plot_marginal(line, point, others={"other": numbers})
        values, density = labelled(ax, "posterior").get_data()
        posterior = line.posterior(point.unsqueeze(0))
        np.testing.assert_allclose(density, posterior.density(tensor(values)).flatten().detach())
        assert np.trapezoid(density, values) == pytest.approx(1, abs=5e-3)
        for label, distribution in (
            ("Gaussian, same mean and variance", posterior),
            ("other", numbers.posterior(point[None])),
        ):
            normal = stats.norm(distribution.mean.item(), distribution.variance.sqrt().item())
            np.testing.assert_allclose(labelled(ax, label).get_ydata(), normal.pdf(values), rtol=1e-6, atol=1e-12)
        assert ax.get_title() == f"skewness {posterior.skewness.item():.2f}".replace("-", "\N{MINUS SIGN}")

    def test_given_axes_and_errors(self, line):
        ax = Figure().subplots()
        assert plot_marginal(line, tensor([0.7]), ax=ax, gaussian=False) is ax
        assert labels(ax) == ["posterior"]
        with pytest.raises(InputDataError, match="point must have 1 elements"):
            plot_marginal(line, tensor([0.7, 0.1]))
        with pytest.raises(InputDataError, match="own name 'posterior'"):
            plot_marginal(line, tensor([0.7]), others={"posterior": line})


class TestMaps:
    @pytest.mark.parametrize("best", [None, tensor([0.5, 0.5])])
    def test_mean_and_duels(self, square, best):
        ax = plot_map(square, SQUARE, best=best, resolution=9)
        X, values = grid(ax)
        torch.testing.assert_close(values, square.posterior(X).mean.squeeze(-1).detach())
        (arrows,) = [artist for artist in ax.collections if hasattr(artist, "U")]
        winners, losers = POINTS_2D[PAIRS].unbind(-2)
        np.testing.assert_allclose(np.stack([arrows.X, arrows.Y], -1), winners)
        np.testing.assert_allclose(np.stack([arrows.U, arrows.V], -1), losers - winners)
        assert labels(ax) == ["points", "winner to loser"] + ([] if best is None else ["recommended"])
        assert arrows.get_zorder() > labelled(ax, "points").get_zorder()

    def test_duels_of_a_pairwise_gp(self):
        ax = plot_map(PairwiseGP(POINTS_2D, PAIRS), SQUARE, resolution=5)
        (arrows,) = [artist for artist in ax.collections if hasattr(artist, "U")]
        np.testing.assert_allclose(np.stack([arrows.X, arrows.Y], -1), POINTS_2D[PAIRS[:, 0]])

    def test_skewness(self, square):
        ax = plot_map(square, SQUARE, "skewness", resolution=9)
        X, values = grid(ax)
        torch.testing.assert_close(values, square.posterior(X).skewness.squeeze(-1).detach())
        low, high = ax.collections[0].get_clim()
        assert low == -high == -values.abs().max()

    def test_skewness_of_one_input(self, line):
        ax = plot_map(line, LINE, "skewness", resolution=9)
        x, values = ax.lines[0].get_data()
        np.testing.assert_allclose(values, line.posterior(tensor(x)[:, None]).skewness.squeeze(-1).detach())
        np.testing.assert_allclose(labelled(ax, "points").get_xdata(), POINTS.flatten())

    def test_width_of_an_interval(self, square):
        ax = plot_map(square, SQUARE, "width", resolution=9)
        X, values = grid(ax)
        low, high = square.posterior(X).quantile(tensor([0.025, 0.975])).squeeze(-1).detach()
        torch.testing.assert_close(values, high - low)

    def test_validity(self, validity):
        ax = plot_map(validity, SQUARE, "valid", level=0.6, resolution=9)
        X, values = grid(ax)
        torch.testing.assert_close(values, LogProbabilityOfValidity(validity)(X.unsqueeze(-2)).exp().detach())
        assert ax.collections[0].get_clim() == (0, 1)
        np.testing.assert_allclose(np.stack(labelled(ax, "valid").get_data(), -1), POINTS_2D[[0, 1, 3]])
        np.testing.assert_allclose(np.stack(labelled(ax, "not valid").get_data(), -1), POINTS_2D[[2, 4]])
        (level,) = [artist for artist in ax.collections if getattr(artist, "levels", None) is not None][1:]
        assert list(level.levels) == [0.6]
        assert "level 0.6" in labels(ax)

    def test_validity_of_one_input_and_labels(self):
        model = skew_gp(POINTS, Binary([1, 0, 0, 1, 1]))
        ax = plot_map(model, LINE, "valid", resolution=9)
        x, values = ax.lines[0].get_data()
        probability = LogProbabilityOfValidity(model)(tensor(x)[:, None, None]).exp()
        np.testing.assert_allclose(values, probability.detach())
        np.testing.assert_allclose(labelled(ax, "label 1").get_data(), [POINTS[[0, 3, 4], 0], [1, 1, 1]])
        np.testing.assert_allclose(labelled(ax, "label 0").get_data(), [POINTS[[1, 2], 0], [0, 0]])

    def test_win_probability(self, line, square):
        for model, bounds, points in ((line, LINE, POINTS), (square, SQUARE, POINTS_2D)):
            ax = plot_map(model, bounds, "win", reference=points[3], resolution=7)
            X, values = (
                grid(ax) if model is square else (tensor(v) for v in (ax.lines[0].get_xdata(), ax.lines[0].get_ydata()))
            )
            X = X.reshape(len(values), -1)
            expected = [model.predictive(torch.stack([x, points[3]])).probs for x in X]
            torch.testing.assert_close(values, torch.stack(expected).detach(), rtol=1e-6, atol=1e-6)
            at = labelled(ax, "reference").get_xydata()[0]
            np.testing.assert_allclose(at, points[3] if model is square else [points[3, 0], 0.5], atol=1e-6)

    def test_win_probability_with_ties_is_that_of_the_first_outcome(self):
        model = skew_gp(POINTS, [Preference(PAIRS), Tie([[0, 4]])])
        line = plot_map(model, LINE, "win", reference=POINTS[3], resolution=5).lines[0]
        duels = torch.stack([tensor(line.get_xdata())[:, None], POINTS[3].expand(5, 1)], -2)
        expected = model.predictive(duels).probs
        assert expected.shape == (5, 3)
        np.testing.assert_allclose(line.get_ydata(), expected[:, 0].detach())

    def test_ensembles_show_the_members_data(self, validity):
        ax = plot_map(FullyBayesianSkewGP([validity, validity]), SQUARE, "valid", resolution=5)
        assert labels(ax) == ["valid", "not valid"]
        assert labels(plot_map(validity, SQUARE, "valid", data=False, resolution=5)) == []

    def test_mixed_data_have_each_its_mark(self):
        answers = [Binary([1, 0], index=[0, 1]), Numeric([0.1, 0.2, 0.3], index=[2, 3, 4])]
        ax = plot_map(skew_gp(POINTS_2D, answers), SQUARE, resolution=5)
        np.testing.assert_allclose(labelled(ax, "points").get_xydata(), POINTS_2D[2:])
        np.testing.assert_allclose(labelled(ax, "label 0").get_xydata(), POINTS_2D[1:2])

    def test_any_function(self, square):
        X, values = grid(plot_map(None, SQUARE, lambda X: X[:, 0] + 10 * X[:, 1], resolution=4))
        torch.testing.assert_close(values, X[:, 0] + 10 * X[:, 1])
        ax = plot_map(square, SQUARE, lambda X: X[:, 0], label="first", title="One", limits=(0, 2), resolution=4)
        assert (ax.get_title(), ax.collections[0].get_clim()) == ("One", (0, 2))
        assert "points" in labels(ax)
        with pytest.raises(InputDataError, match="a finite value for each of the 16 points"):
            plot_map(None, SQUARE, lambda X: X[:, 0] / 0, resolution=4)
        plot_map(None, SQUARE, lambda X: torch.ones(len(X)))  # no level sets, no warning

    def test_given_axes(self, square):
        ax = Figure().subplots()
        assert plot_map(square, SQUARE, resolution=5, ax=ax) is ax

    def test_errors(self, square, numbers):
        for of, options, error, message in (
            ("mean", {"best": POINTS_2D}, InputDataError, "best must have 2 elements"),
            ("valid", {}, UnsupportedError, "takes Validity or Binary"),
            ("variance", {}, InputDataError, "of must be one of mean, skewness, width, win, valid"),
            ("win", {}, InputDataError, "which needs it"),
            ("mean", {"reference": POINTS_2D[0]}, InputDataError, "others are compared with"),
            ("win", {"reference": POINTS_2D}, InputDataError, "reference must have 2 elements"),
            ("win", {"reference": [0.5, float("nan")]}, InputDataError, "reference must hold finite numbers"),
        ):
            with pytest.raises(error, match=message):
                plot_map(square, SQUARE, of, **options)
        with pytest.raises(UnsupportedError, match="GPyTorchPosterior has no skewness"):
            plot_map(numbers, LINE, "skewness")
        with pytest.raises(InputDataError, match="2 x 2, a column for each input"):
            plot_map(square, LINE)
        with pytest.raises(InputDataError, match="duels"):
            plot_map(skew_gp(POINTS, Binary([1, 0, 1, 0, 1])), LINE, "win", reference=POINTS[0])
        with pytest.raises(InputDataError, match="model must be"):
            plot_map(None, SQUARE)
        assert pyplot.get_fignums() == []


class TestPyplot:
    @pytest.mark.parametrize("picture", [plot_posterior, plot_slices])
    def test_the_new_figure_is_the_current_one(self, line, picture):
        previous = pyplot.figure()
        arguments = (POINTS[0],) if picture is plot_slices else ()
        panel = np.ravel(picture(line, LINE, *arguments, resolution=5))[0]
        assert pyplot.gcf() is panel.figure is not previous  # which plt.show and plt.savefig take

    def test_axes_given_open_no_figure(self, line):
        plot_posterior(line, LINE, resolution=5, ax=Figure().subplots())
        assert pyplot.get_fignums() == []

    def test_units(self, line, numbers):
        unit = "(unit: noise of one answer)"
        assert plot_posterior(line, LINE, resolution=5).get_ylabel() == f"$f(x)$ {unit}"
        assert plot_posterior(numbers, LINE, resolution=5).get_ylabel() == "$f(x)$"
        mixed = skew_gp(POINTS, [Preference(PAIRS), Numeric([-1.0, 0.0, 0.5, 1.0, 1.5])])
        assert plot_posterior(mixed, LINE, resolution=5).get_ylabel() == "$f(x)$"


def test_judges_tastes_are_those_of_the_table():
    X = torch.rand(6, 2, dtype=torch.double, generator=torch.Generator().manual_seed(0))
    pairs = [[0, 1], [2, 3], [4, 5], [1, 3]]
    model = SkewGP(X, Preference(pairs * 2, judge=[0] * 4 + [1] * 4), approximation="ep")
    summary = judge_summary(model)
    panels = plot_tastes(summary, names=["ann", "bob"], inputs=["sweet", "strong"])
    assert [panel.get_xlabel() for panel in panels] == ["taste for sweet", "taste for strong"]
    for i, panel in enumerate(panels):
        assert panel.yaxis_inverted()
        points, _, (bars,) = panel.containers[0].lines
        assert np.allclose(points.get_xdata(), summary.mean[1:, i + 1])
        ends = np.array([segment[:, 0] for segment in bars.get_segments()])
        assert np.allclose(ends, torch.stack([summary.lower[1:, i + 1], summary.upper[1:, i + 1]], dim=-1))
    told = {text.get_text() for text in panels[0].figure.legends[0].get_texts()}
    assert told == {"90% band", "shared", "a judge, 90% interval"}
    wide = plot_tastes(judge_summary(model, level=0.5), ax=Figure().subplots(2))
    assert {text.get_text() for text in wide[0].get_legend().get_texts()} == {
        "50% band", "shared", "a judge, 50% interval",
    }  # fmt: skip
    for bad in ({"names": ["ann"]}, {"inputs": ["sweet"]}, {"ax": wide[0]}):
        with pytest.raises(InputDataError, match="must hold"):
            plot_tastes(summary, **bad)
    for bad in ({"names": 2}, {"names": "ab"}, {"inputs": 2}):
        with pytest.raises(InputDataError, match="must be a list of 2 names"):
            plot_tastes(summary, **bad)
    with pytest.raises(InputDataError, match=r"judge_summary\(model\) returns; got SkewGP"):
        plot_tastes(model)


def test_pictures_can_be_saved(line, square, validity, tmp_path):
    for i, ax in enumerate(
        [
            plot_posterior(line, LINE, gaussian=True, resolution=9),
            plot_slices(square, SQUARE, POINTS_2D[0], resolution=9)[0],
            plot_marginal(line, tensor([0.7])),
            plot_map(square, SQUARE, best=POINTS_2D[0], resolution=9),
            plot_map(validity, SQUARE, "valid", level=0.6, resolution=9),
        ]
    ):
        ax.figure.savefig(tmp_path / f"{i}.png", dpi=40)
        assert (tmp_path / f"{i}.png").stat().st_size > 0


@pytest.mark.parametrize("dim", [0, 1])
def test_threshold(dim):
    model = sharp(skew_gp(POINTS_2D, Binary([0, 1, 1, 0, 1])))
    ax = plot_threshold(model, SQUARE, 0.6, dim=dim, resolution=7, probability=0.5)
    lines = {line.get_label(): line for line in ax.get_lines()}
    x = torch.linspace(*SQUARE[:, 1 - dim], 7)
    X = torch.stack([x, x], dim=-1).double()
    found = threshold(model, X, 0.6, dim, SQUARE[:, dim], probability=0.5)
    shown = tensor(lines["median"].get_ydata())
    assert torch.equal(shown.isfinite(), found.median.isfinite())
    assert shown.isfinite().any()
    np.testing.assert_allclose(shown.nan_to_num(), found.median.nan_to_num(0.0, 0.0, 0.0), rtol=1e-6)
    (band,) = ax.collections
    edges = np.concatenate([path.vertices for path in band.get_paths()])
    ends = torch.stack([found.lower, found.upper]).clamp(*SQUARE[:, dim])
    assert edges[:, 1].min() == pytest.approx(float(ends.min()))
    assert edges[:, 1].max() == pytest.approx(float(ends.max()))
    np.testing.assert_allclose(lines["label 1"].get_xdata(), POINTS_2D[[1, 2, 4], 1 - dim])
    np.testing.assert_allclose(lines["label 0"].get_ydata(), POINTS_2D[[0, 3], dim])


def test_threshold_of_what_has_none():
    with pytest.raises(UnsupportedError, match="two inputs"):
        plot_threshold(skew_gp(POINTS, Binary([0, 1, 1, 0, 1])), LINE, 0.6)
    with pytest.raises(InputDataError, match="dim must be 0 or 1"):
        plot_threshold(skew_gp(POINTS_2D, Binary([0, 1, 1, 0, 1])), SQUARE, 0.6, dim=2)


class TestFixedInputs:
    """One or two inputs of several, the others fixed by equal bounds, with names."""

    NAMES = ("heat", "time", "salt")
    PLANE = torch.tensor([[0.0, 0.4, 0.0], [1.0, 0.4, 2.0]], dtype=torch.float64)
    AXIS = torch.tensor([[0.0, 0.4, 1.0], [1.0, 0.4, 1.0]], dtype=torch.float64)
    X = torch.tensor([[0.1, 0.4, 1.0], [0.9, 0.4, 1.0], [0.5, 0.1, 1.0], [0.3, 0.4, 0.2]], dtype=torch.float64)

    def model(self, observations):
        return SkewGP(self.X, observations, input_transform=Normalize(3), approximation="ep")

    @pytest.mark.parametrize("of", ["skewness", "width", "valid", "mean"])
    def test_maps_are_those_of_the_plane(self, of):
        model = self.model(Binary([1, 0, 1, 0]) if of == "valid" else Preference([[0, 1], [2, 3], [3, 0]]))
        ax = plot_map(model, self.PLANE, of, resolution=3, inputs=self.NAMES, ax=Figure().subplots())
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("heat", "salt")
        assert ax.get_legend() is not None
        marked = {tuple(xy) for line in ax.lines for xy in line.get_xydata().round(6).tolist()}
        assert marked == {(0.1, 1.0), (0.9, 1.0), (0.3, 0.2)}  # not that of another time
        if of in ("valid", "mean"):
            grid = torch.cartesian_prod(*(torch.linspace(0, top, 3, dtype=torch.float64) for top in (1, 2)))
            points = torch.stack([grid[:, 0], torch.full((9,), 0.4, dtype=torch.float64), grid[:, 1]], dim=-1)
            values = model.predictive(points).probs if of == "valid" else model.posterior(points).mean
            drawn = torch.tensor(ax.collections[0].get_array().reshape(3, 3).T.ravel())
            torch.testing.assert_close(drawn, values.detach().flatten())

    def test_lines_are_those_of_the_axis(self):
        model = self.model([Binary([1, 0, 1], index=[0, 1, 2]), Preference([[0, 1], [2, 3]])])
        ax = plot_posterior(model, self.AXIS, resolution=5, inputs=self.NAMES, ax=Figure().subplots())
        assert ax.get_xlabel() == "heat"
        mean = next(line for line in ax.lines if line.get_label() == "mean")
        points = self.AXIS[0].repeat(5, 1)
        points[:, 0] = torch.linspace(0, 1, 5, dtype=torch.float64)
        torch.testing.assert_close(torch.tensor(mean.get_ydata()), model.posterior(points).mean.detach().flatten())
        winner = next(line for line in ax.lines if line.get_label() == "winner")
        assert winner.get_xdata().tolist() == [0.1]  # the other duel is elsewhere
        ax = plot_map(self.model(Binary([1, 0, 1, 0])), self.AXIS, "valid", inputs=self.NAMES, ax=Figure().subplots())
        assert ax.get_xlabel() == "heat"
        panels = plot_slices(model, torch.tensor([[0.0] * 3, [1.0] * 3]), self.X[0], inputs=self.NAMES)
        assert [panel.get_xlabel() for panel in panels] == [*self.NAMES]
        pyplot.close("all")
        against = plot_map(model, self.PLANE, "win", reference=self.X[0], resolution=3, ax=Figure().subplots())
        assert (against.get_xlabel(), against.get_ylabel()) == ("$x_{1}$", "$x_{3}$")

    def test_mistakes(self):
        model = self.model(Preference([[0, 1]]))
        with pytest.raises(UnsupportedError, match=r"got 3\. Hold others fixed by equal bounds; plot_slices"):
            plot_map(model, torch.tensor([[0.0] * 3, [1.0] * 3]))
        with pytest.raises(InputDataError, match="lower ones below upper ones"):
            plot_map(model, self.AXIS[:1].repeat(2, 1))
        with pytest.raises(InputDataError, match="lower ones below upper ones"):
            plot_slices(model, self.PLANE, self.X[0])
        with pytest.raises(InputDataError, match="inputs must hold 3 names"):
            plot_map(model, self.PLANE, inputs=["heat"])


@pytest.mark.filterwarnings("ignore:train_X leaves the unit cube")  # the warning that a user may ignore
@pytest.mark.parametrize("dim", [1, 2])
def test_a_map_that_unscaled_inputs_leave_constant_says_so(dim, generator):
    """The default priors are for the unit cube; a domain of 100 units without a transform is white noise to them."""
    bounds = torch.tensor([[0.0] * dim, [100.0] * dim], dtype=torch.double)
    X = 100 * torch.rand(6, dim, dtype=torch.double, generator=generator)
    for transform, told in ((None, True), (Normalize(dim, bounds=bounds), False)):
        model = SkewGP(X, Preference([[0, 1], [2, 3], [4, 5]]), input_transform=transform)
        texts = [text.get_text() for text in plot_map(model, bounds).texts]
        assert any("inputs are not scaled" in text for text in texts) == told
    small = SkewGP(X / 100, Preference([[0, 1], [2, 3], [4, 5]]))
    assert not plot_map(small, bounds / 100, of=lambda X: torch.zeros(len(X))).texts  # constant for another reason
    pyplot.close("all")
