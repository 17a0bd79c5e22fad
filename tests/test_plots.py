"""What is drawn, read back from the axes, is what the model says; nothing else changes."""

from functools import cache

import matplotlib as mpl
import numpy as np
import pandas
import pytest
import torch
from botorch.exceptions.errors import InputDataError, UnsupportedError
from botorch.models import PairwiseGP, SingleTaskGP
from botorch.models.kernels import CategoricalKernel
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Log
from gpytorch.kernels import RBFKernel
from matplotlib import pyplot
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from scipy import stats

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition import LogProbabilityOfValidity
from botorch_skewgp.checking import judge_summary
from botorch_skewgp.items import item_model, leaderboard
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
    plot_leaderboard,
    plot_map,
    plot_marginal,
    plot_posterior,
    plot_slices,
    plot_summary,
    plot_tastes,
    plot_threshold,
)
from botorch_skewgp.thresholds import threshold
from botorch_skewgp.transformed import BayesianTransformedGP
from botorch_skewgp.truncated.draws import DrawSettings
from botorch_skewgp.warpings import BoxCox

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


def skew_gp(points, observations, scale=None):
    """A model of points that lie in `LINE` or `SQUARE`; at a scale of 20 duels tell much, and posteriors are skewed."""
    bounds = LINE if points.shape[-1] == 1 else SQUARE
    transform = Normalize(points.shape[-1], bounds=bounds)
    model = SkewGP(points, observations, input_transform=transform, draw_settings=SETTINGS)
    if scale is not None:
        model.covar_module.outputscale, model.covar_module.base_kernel.lengthscale = scale, 0.5 / 3
    return model


MODELS = {
    "line": lambda: skew_gp(POINTS, Preference(PAIRS), 20.0),
    "square": lambda: skew_gp(POINTS_2D, Preference(PAIRS), 20.0),
    "labels": lambda: skew_gp(POINTS, Binary([1, 0, 0, 1, 1])),
    "square of labels": lambda: skew_gp(POINTS_2D, Binary([0, 1, 1, 0, 1]), 20.0),
    "validity": lambda: skew_gp(POINTS_2D, Validity([1, 1, 0, 1, 0])),
    "ties": lambda: skew_gp(POINTS, [Preference(PAIRS), Tie([[0, 4]])]),
    "classes": lambda: skew_gp(POINTS, LabelPreference.from_classes(torch.tensor([0, 1, 2, 1, 0]), 3)),
    "numbers": lambda: SingleTaskGP(POINTS, torch.sin(3 * POINTS), tensor([[0.01]] * 5)),
    "logarithms": lambda: SingleTaskGP(POINTS, POINTS.exp(), tensor([[0.01]] * 5), outcome_transform=Log()),
    "batch": lambda: SingleTaskGP(POINTS.expand(2, 5, 1), torch.sin(POINTS).expand(2, 5, 1)),
    "heavy tails": lambda: BayesianTransformedGP(LOSS_X, torch.exp(torch.cos(2 * LOSS_X)), warping=BoxCox()),
    "ensemble": lambda: FullyBayesianSkewGP([of("validity")] * 2),
    "three inputs": lambda: SkewGP(X3, DUELS3, input_transform=Normalize(3), approximation="ep"),
    "labels of three": lambda: SkewGP(X3, Binary([1, 0, 1, 0]), input_transform=Normalize(3), approximation="ep"),
}
LOSS_X = torch.linspace(-1, 2, 10, dtype=torch.double).unsqueeze(-1)
# one or two inputs of three, the others fixed by equal bounds
NAMES = ("heat", "time", "salt")
PLANE, AXIS = tensor([[0.0, 0.4, 0.0], [1.0, 0.4, 2.0]]), tensor([[0.0, 0.4, 1.0], [1.0, 0.4, 1.0]])
CUBE = tensor([[0.0] * 3, [1.0] * 3])
X3 = tensor([[0.1, 0.4, 1.0], [0.9, 0.4, 1.0], [0.5, 0.1, 1.0], [0.3, 0.4, 0.2]])
DUELS3 = Preference([[0, 1], [2, 3], [3, 0]])


@cache
def of(name):
    """A model by its name."""
    return MODELS[name]()


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
    assert np.allclose([lower[:, 0], upper[:, 0]], x)
    return lower[:, 1], upper[:, 1]


def shown(ax):
    """Points and values of a map, or of the line of one input."""
    if not (ax.collections and hasattr(ax.collections[0], "get_coordinates")):
        x, values = ax.lines[0].get_data()
        return tensor(x).unsqueeze(-1), tensor(values)
    mesh = ax.collections[0]
    return tensor(mesh.get_coordinates().reshape(-1, 2)), tensor(np.asarray(mesh.get_array())).flatten()


@pytest.mark.parametrize("name", ["line", "numbers"])
def test_mean_and_bands_are_the_posteriors(name):
    ax = plot_posterior(of(name), LINE.float(), probabilities=(0.9, 0.5), resolution=31)
    x, mean = labelled(ax, "mean").get_data()
    posterior = of(name).posterior(tensor(x).unsqueeze(-1))
    np.testing.assert_allclose(x, np.linspace(-1, 2, 31))
    np.testing.assert_allclose(mean, posterior.mean.squeeze(-1).detach())
    for probability in (0.5, 0.9):
        drawn = edges(labelled(ax, f"{100 * probability:g} %"), x)
        levels = tensor([0.5 - probability / 2, 0.5 + probability / 2])
        np.testing.assert_allclose(drawn, posterior.quantile(levels).squeeze(-1).detach())
    narrow, wide = labelled(ax, "50 %"), labelled(ax, "90 %")
    assert narrow.get_zorder() > wide.get_zorder()
    assert sum(to_rgb(to_hex(narrow.get_facecolor()[0]))) < sum(to_rgb(to_hex(wide.get_facecolor()[0])))


def test_gaussian_has_the_matched_moments():
    line = of("line")
    ax = plot_posterior(line, LINE, probabilities=(0.8,), gaussian=True, resolution=11)
    x, lower = labelled(ax, "80 %, Gaussian").get_data()
    distribution = line.posterior(tensor(x).unsqueeze(-1)).moment_matched()
    mean, sd = distribution.mean.squeeze(-1).detach(), distribution.variance.sqrt().squeeze(-1).detach()
    np.testing.assert_allclose(lower, mean + stats.norm.ppf(0.1) * sd, rtol=1e-6)
    skewed, _ = edges(labelled(ax, "80 %"), x)
    assert np.abs(skewed - lower).max() > 0.01  # else the two could be mistaken for each other


def test_without_moments_the_line_is_the_median():
    model, point = of("heavy tails"), POINTS[1] + 0.05
    ax = plot_posterior(model, LINE, probabilities=(0.9,), resolution=9)
    x, median = labelled(ax, "median").get_data()
    posterior = model.posterior(tensor(x).unsqueeze(-1))
    with pytest.raises(UnsupportedError, match="no mean"):
        _ = posterior.mean
    lower, middle, upper = posterior.quantile(tensor([0.05, 0.5, 0.95])).squeeze(-1)
    np.testing.assert_allclose(median, middle)
    np.testing.assert_allclose(edges(labelled(ax, "90 %"), x), torch.stack([lower, upper]))
    (panel,) = plot_slices(model, LINE, point, resolution=5)
    assert labels(panel)[0] == "median"
    assert labels(plot_marginal(model, point)) == ["posterior"]  # no Gaussian has its moments


def test_a_second_model_on_the_same_axes():
    ax = plot_posterior(of("line"), LINE)
    plot_posterior(of("numbers"), LINE, ax=ax, probabilities=(), color=COLORS[1])
    assert [entry.get_color() for entry in ax.lines if entry.get_label() == "mean"] == [COLORS[0], COLORS[1]]


def test_ensemble_is_the_mixture_of_its_members():
    other = skew_gp(POINTS, Preference(PAIRS))
    other.covar_module.outputscale = 1000.0
    members = [of("line"), other]
    ax = plot_posterior(FullyBayesianSkewGP(members), LINE, probabilities=(0.5,))
    x, _ = labelled(ax, "mean").get_data()
    lower, _ = edges(labelled(ax, "50 %"), x)
    X = tensor(x).reshape(-1, 1)
    below = [m.posterior(X).cdf(tensor(lower).reshape(-1, 1)).detach() for m in members]
    np.testing.assert_allclose(torch.stack(below).mean(0).flatten(), 0.25, rtol=1e-6)
    assert abs(float((below[0] - below[1]).abs().max())) > 0.05
    assert plot_marginal(FullyBayesianSkewGP(members), POINTS[0]).get_title() == ""  # a mixture tells no skewness


def test_each_kind_has_its_mark():
    numbers, within = Numeric([0.4, 0.1], index=[0, 2]), Censored([-torch.inf, 0.3], [0.2, torch.inf], index=[1, 3])
    judged = [Validity([True, False, True]), Ordinal([1], 2, index=[4]), Choice([[4, 0, 1]]), Tie([[2, 3]])]
    ax = plot_posterior(skew_gp(POINTS, [numbers, within, *judged]), LINE)
    x = POINTS.squeeze(-1).tolist()
    expected = {"number": ([x[0], x[2]], [0.4, 0.1]), "at most": ([x[1]], [0.2]), "at least": ([x[3]], [0.3])}
    for label, data in expected.items():
        np.testing.assert_allclose(labelled(ax, label).get_data(), data)
    where = {"valid": [x[0], x[2]], "not valid": [x[1]], "grade 1": [x[4]]}
    where |= {"winner": [x[4], x[4]], "loser": [x[0], x[1]], "tie": [x[2], x[3]]}
    lowest = min(edges(labelled(ax, "95 %"), labelled(ax, "mean").get_xdata())[0])
    for label, positions in where.items():
        marks = labelled(ax, label)
        np.testing.assert_allclose(np.sort(marks.get_xdata()), sorted(positions))
        assert (marks.get_ydata() < lowest).all()


def test_each_duel_is_a_line_of_its_own():
    ax = plot_posterior(of("line"), LINE)
    winners, losers = labelled(ax, "winner"), labelled(ax, "loser")
    np.testing.assert_allclose(winners.get_xdata(), POINTS[PAIRS[:, 0], 0])
    np.testing.assert_allclose(losers.get_xdata(), POINTS[PAIRS[:, 1], 0])
    np.testing.assert_allclose(winners.get_ydata(), losers.get_ydata())
    assert len(set(winners.get_ydata())) == len(PAIRS)
    assert labels(plot_posterior(of("line"), LINE, data=False)) == ["mean", "50 %", "80 %", "95 %"]


def test_each_slice_is_the_posterior_along_its_input():
    square, point = of("square"), tensor([0.3, 1.1])
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


def test_a_category_has_a_point_at_each_value():
    X = torch.cat([POINTS, tensor([[0.0], [1.0], [2.0], [0.0], [2.0]])], dim=-1)
    kernel = RBFKernel(active_dims=[0]) * CategoricalKernel(active_dims=[1])
    model, point = SkewGP(X, Binary([1, 0, 0, 1, 1]), covar_module=kernel, approximation="ep"), tensor([0.5, 1.0])
    numeric, category = plot_slices(model, tensor([[-1.0, 0.0], [2.0, 3.0]]), point, probabilities=(0.9,), resolution=7)
    assert len(labelled(numeric, "mean").get_xdata()) == 7
    mean, bars = labelled(category, "mean"), labelled(category, "90 %")
    assert (mean.get_linestyle(), mean.get_marker()) == ("None", "o")
    np.testing.assert_allclose(mean.get_xdata(), [0, 1, 2, 3])
    posterior = model.posterior(torch.cat([torch.full((4, 1), 0.5), torch.arange(4.0).unsqueeze(-1)], dim=-1).double())
    np.testing.assert_allclose(mean.get_ydata(), posterior.mean.squeeze(-1).detach())
    ends = posterior.quantile(tensor([0.05, 0.95])).squeeze(-1).detach()
    np.testing.assert_allclose(np.stack([bar[:, 1] for bar in bars.get_segments()]), ends.mT)


def test_densities():
    line, numbers, point = of("line"), of("numbers"), tensor([0.7])
    ax = plot_marginal(line, point, others={"other": numbers})
    values, density = labelled(ax, "posterior").get_data()
    posterior = line.posterior(point.unsqueeze(0))
    np.testing.assert_allclose(density, posterior.density(tensor(values)).flatten().detach())
    assert np.trapezoid(density, values) == pytest.approx(1, abs=5e-3)
    others = {"Gaussian, same mean and variance": posterior, "other": numbers.posterior(point[None])}
    for label, distribution in others.items():
        normal = stats.norm(distribution.mean.item(), distribution.variance.sqrt().item())
        np.testing.assert_allclose(labelled(ax, label).get_ydata(), normal.pdf(values), rtol=1e-6, atol=1e-12)
    assert ax.get_title() == f"skewness {posterior.skewness.item():.2f}".replace("-", "\N{MINUS SIGN}")
    assert labels(plot_marginal(line, point, gaussian=False)) == ["posterior"]


def wins(against):
    def probability(model, X):
        probs = model.predictive(torch.stack([X, against.expand_as(X)], dim=-2)).probs
        return probs if probs.ndim == 1 else probs[:, 0]  # with ties

    return probability


def valid(model, X):
    return LogProbabilityOfValidity(model)(X.unsqueeze(-2)).exp()


def in_plane(function):
    return lambda model, X: function(model, torch.stack([X[:, 0], torch.full_like(X[:, 0], 0.4), X[:, 1]], dim=-1))


def mean(model, X):
    return model.posterior(X).mean


def skewness(model, X):
    return model.posterior(X).skewness


def width(model, X):
    return model.posterior(X).quantile(tensor([0.025, 0.975])).diff(dim=0)


@pytest.mark.parametrize(
    ("name", "bounds", "quantity", "expected", "options"),
    [
        ("square", SQUARE, "mean", mean, {}),
        ("square", SQUARE, "skewness", skewness, {}),
        ("line", LINE, "skewness", skewness, {}),
        ("square", SQUARE, "width", width, {}),
        ("validity", SQUARE, "valid", valid, {}),
        ("labels", LINE, "valid", valid, {}),
        ("ensemble", SQUARE, "valid", lambda _, X: valid(of("validity"), X), {}),
        ("line", LINE, "win", wins(POINTS[3]), {"reference": POINTS[3]}),
        ("square", SQUARE, "win", wins(POINTS_2D[3]), {"reference": POINTS_2D[3]}),
        ("ties", LINE, "win", wins(POINTS[3]), {"reference": POINTS[3]}),
        ("square", SQUARE, lambda X: X[:, 0] + 10 * X[:, 1], lambda _, X: X[:, 0] + 10 * X[:, 1], {}),
        ("three inputs", PLANE, "mean", in_plane(mean), {"inputs": NAMES}),
        ("three inputs", PLANE, "skewness", in_plane(skewness), {"inputs": NAMES}),
        ("three inputs", PLANE, "width", in_plane(width), {"inputs": NAMES}),
        ("labels of three", PLANE, "valid", in_plane(valid), {"inputs": NAMES}),
    ],
)
def test_a_map_is_that_of_its_quantity(name, bounds, quantity, expected, options):
    ax = plot_map(of(name), bounds, quantity, resolution=5, **options)
    X, values = shown(ax)
    assert len(X) == (5 if bounds is LINE else 25)
    torch.testing.assert_close(values, expected(of(name), X).detach().flatten(), rtol=1e-6, atol=1e-6)
    if bounds is PLANE:
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("heat", "salt")
        marked = {tuple(xy) for line in ax.lines for xy in line.get_xydata().round(6).tolist()}
        assert marked == {(0.1, 1.0), (0.9, 1.0), (0.3, 0.2)}  # not that of another time
    if quantity == "skewness" and bounds is SQUARE:
        low, high = ax.collections[0].get_clim()
        assert low == -high == -values.abs().max()
    if quantity == "win":
        reference = options["reference"]
        height = expected(of(name), reference.unsqueeze(0)).tolist() if bounds is LINE else []
        np.testing.assert_allclose(labelled(ax, "reference").get_xydata()[0], [*reference, *height], atol=1e-6)


def test_functions_of_no_model():
    ax = plot_map(of("square"), SQUARE, lambda X: X[:, 0], label="first", title="One", limits=(0, 2), resolution=4)
    assert (ax.get_title(), ax.collections[0].get_clim()) == ("One", (0, 2))
    assert "points" in labels(ax)
    ax = plot_map(None, SQUARE, lambda X: torch.ones(len(X)), resolution=4)  # no level sets, no warning
    assert labels(ax) == []


@pytest.mark.parametrize("best", [None, tensor([0.5, 0.5])])
@pytest.mark.parametrize("model", [lambda: of("square"), lambda: PairwiseGP(POINTS_2D, PAIRS)])
def test_arrows_of_duels(model, best):
    ax = plot_map(model(), SQUARE, best=best, resolution=5)
    (arrows,) = [artist for artist in ax.collections if hasattr(artist, "U")]
    winners, losers = POINTS_2D[PAIRS].unbind(-2)
    np.testing.assert_allclose(np.stack([arrows.X, arrows.Y], -1), winners)
    np.testing.assert_allclose(np.stack([arrows.U, arrows.V], -1), losers - winners)
    assert labels(ax) == ["points", "winner to loser"] + ([] if best is None else ["recommended"])
    assert arrows.get_zorder() > labelled(ax, "points").get_zorder()


def test_marks_of_answers():
    ax = plot_map(of("validity"), SQUARE, "valid", level=0.6, resolution=9)
    assert ax.collections[0].get_clim() == (0, 1)
    np.testing.assert_allclose(labelled(ax, "valid").get_xydata(), POINTS_2D[[0, 1, 3]])
    np.testing.assert_allclose(labelled(ax, "not valid").get_xydata(), POINTS_2D[[2, 4]])
    (level,) = [artist for artist in ax.collections if getattr(artist, "levels", None) is not None][1:]
    assert list(level.levels) == [0.6]
    assert "level 0.6" in labels(ax)
    assert labels(plot_map(of("ensemble"), SQUARE, "valid", resolution=5)) == ["valid", "not valid"]
    assert labels(plot_map(of("validity"), SQUARE, "valid", data=False, resolution=5)) == []
    ax = plot_map(of("labels"), LINE, "valid", resolution=9)
    np.testing.assert_allclose(labelled(ax, "label 1").get_data(), [POINTS[[0, 3, 4], 0], [1, 1, 1]])
    np.testing.assert_allclose(labelled(ax, "label 0").get_data(), [POINTS[[1, 2], 0], [0, 0]])
    ax = plot_map(of("line"), LINE, "skewness", resolution=9)
    np.testing.assert_allclose(labelled(ax, "points").get_xdata(), POINTS.flatten())
    answers = [Binary([1, 0], index=[0, 1]), Numeric([0.1, 0.2, 0.3], index=[2, 3, 4])]
    ax = plot_map(skew_gp(POINTS_2D, answers), SQUARE, resolution=5)
    np.testing.assert_allclose(labelled(ax, "points").get_xydata(), POINTS_2D[2:])
    np.testing.assert_allclose(labelled(ax, "label 0").get_xydata(), POINTS_2D[1:2])


def test_lines_with_fixed_inputs_are_those_of_the_axis():
    model = of("three inputs")
    ax = plot_posterior(model, AXIS, resolution=5, inputs=NAMES)
    assert ax.get_xlabel() == "heat"
    points = AXIS[0].repeat(5, 1)
    points[:, 0] = torch.linspace(0, 1, 5, dtype=torch.float64)
    np.testing.assert_allclose(labelled(ax, "mean").get_ydata(), model.posterior(points).mean.detach().flatten())
    assert labelled(ax, "winner").get_xdata().tolist() == [0.1]  # the other duels are elsewhere
    assert plot_map(of("labels of three"), AXIS, "valid", inputs=NAMES).get_xlabel() == "heat"
    panels = plot_slices(model, CUBE, X3[0], inputs=NAMES)
    assert [panel.get_xlabel() for panel in panels] == [*NAMES]
    against = plot_map(model, PLANE, "win", reference=X3[0], resolution=3)
    assert (against.get_xlabel(), against.get_ylabel()) == ("$x_{1}$", "$x_{3}$")


@pytest.mark.parametrize("dim", [0, 1])
def test_threshold(dim):
    model = of("square of labels")
    ax = plot_threshold(model, SQUARE, 0.6, dim=dim, resolution=7, probability=0.5)
    x = torch.linspace(*SQUARE[:, 1 - dim], 7)
    X = torch.stack([x, x], dim=-1).double()
    found = threshold(model, X, 0.6, dim, SQUARE[:, dim], probability=0.5)
    shown = tensor(labelled(ax, "median").get_ydata())
    assert torch.equal(shown.isfinite(), found.median.isfinite())
    assert shown.isfinite().any()
    np.testing.assert_allclose(shown.nan_to_num(), found.median.nan_to_num(0.0, 0.0, 0.0), rtol=1e-6)
    (band,) = ax.collections
    outline = np.concatenate([path.vertices for path in band.get_paths()])
    ends = torch.stack([found.lower, found.upper]).clamp(*SQUARE[:, dim])
    assert (outline[:, 1].min(), outline[:, 1].max()) == pytest.approx((float(ends.min()), float(ends.max())))
    np.testing.assert_allclose(labelled(ax, "label 1").get_xdata(), POINTS_2D[[1, 2, 4], 1 - dim])
    np.testing.assert_allclose(labelled(ax, "label 0").get_ydata(), POINTS_2D[[0, 3], dim])


PICTURES = {
    "posterior": lambda ax: plot_posterior(of("line"), LINE, gaussian=True, resolution=5, ax=ax),
    "slices": lambda ax: plot_slices(of("square"), SQUARE, POINTS_2D[0], resolution=5, ax=ax),
    "marginal": lambda ax: plot_marginal(of("line"), tensor([0.7]), ax=ax),
    "map": lambda ax: plot_map(of("validity"), SQUARE, "valid", level=0.6, best=POINTS_2D[0], resolution=9, ax=ax),
    "threshold": lambda ax: plot_threshold(of("square of labels"), SQUARE, 0.6, resolution=5, ax=ax),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_drawn_on_given_axes_or_on_a_new_figure_which_can_be_saved(name, tmp_path):
    previous = pyplot.figure()
    given = Figure().subplots(1, 2 if name == "slices" else 1, squeeze=False).ravel()
    drawn = PICTURES[name](given if name == "slices" else given[0])
    assert [*np.ravel(drawn)] == [*given]
    assert pyplot.gcf() is previous
    panel = np.ravel(PICTURES[name](None))[0]
    assert pyplot.gcf() is panel.figure is not previous  # which plt.show and plt.savefig take
    panel.figure.savefig(tmp_path / "picture.png", dpi=40)
    assert (tmp_path / "picture.png").stat().st_size > 0


def test_units():
    unit = "(unit: noise of one answer)"
    assert plot_posterior(of("line"), LINE, resolution=5).get_ylabel() == f"$f(x)$ {unit}"
    assert plot_posterior(of("numbers"), LINE, resolution=5).get_ylabel() == "$f(x)$"
    mixed = skew_gp(POINTS, [Preference(PAIRS), Numeric([-1.0, 0.0, 0.5, 1.0, 1.5])])
    assert plot_posterior(mixed, LINE, resolution=5).get_ylabel() == "$f(x)$"


REFUSED = [
    (lambda: plot_posterior(of("line"), LINE.squeeze(-1)), "lower ones first"),
    (lambda: plot_posterior(of("line"), LINE.flip(0)), "lower ones not above upper"),
    (lambda: plot_posterior(of("line"), LINE, probabilities=(0.5, 1.0)), "must be strictly between 0 and 1"),
    (lambda: plot_posterior(of("square"), LINE), "2 x 2, a column for each input"),
    (lambda: plot_slices(of("square"), SQUARE, POINTS[0]), "point must have 2 elements"),
    (lambda: plot_slices(of("square"), SQUARE, POINTS_2D[0], ax=Figure().subplots()), "ax must hold 2 axes"),
    (lambda: plot_slices(of("three inputs"), PLANE, X3[0]), "lower ones below upper ones"),
    (lambda: plot_marginal(of("line"), tensor([0.7, 0.1])), "point must have 1 elements"),
    (lambda: plot_marginal(of("line"), tensor([0.7]), others={"posterior": of("line")}), "own name 'posterior'"),
    (lambda: plot_map(None, SQUARE), "model must be"),
    (lambda: plot_map(None, SQUARE, lambda X: X[:, 0] / 0, resolution=4), "finite value for each of the 16 points"),
    (lambda: plot_map(of("square"), SQUARE, best=POINTS_2D), "best must have 2 elements"),
    (lambda: plot_map(of("square"), SQUARE, "variance"), "of must be one of mean, skewness, width, win, valid"),
    (lambda: plot_map(of("square"), SQUARE, "win"), "which needs it"),
    (lambda: plot_map(of("square"), SQUARE, reference=POINTS_2D[0]), "others are compared with"),
    (lambda: plot_map(of("square"), SQUARE, "win", reference=POINTS_2D), "reference must have 2 elements"),
    (lambda: plot_map(of("square"), SQUARE, "win", reference=[0.5, torch.nan]), "reference must hold finite numbers"),
    (lambda: plot_map(of("labels"), LINE, "win", reference=POINTS[0]), "duels"),
    (lambda: plot_map(of("three inputs"), AXIS[:1].repeat(2, 1)), "lower ones below upper ones"),
    (lambda: plot_map(of("three inputs"), PLANE, inputs=["heat"]), "inputs must hold 3 names"),
    (lambda: plot_threshold(of("square of labels"), SQUARE, 0.6, dim=2), "dim is about inputs 0 to 1"),
]
UNSUPPORTED = [
    (lambda: plot_posterior(of("classes"), LINE), "3 outputs; draw one"),
    (lambda: plot_posterior(of("logarithms"), LINE), "TransformedPosterior has no quantile"),
    (lambda: plot_posterior(of("heavy tails"), LINE, gaussian=True), "no mean|no variance"),
    (lambda: plot_posterior(of("square"), SQUARE), "one input; got 2"),
    (lambda: plot_posterior(of("batch"), LINE), "draw one of its members"),
    (lambda: plot_map(of("square"), SQUARE, "valid"), "takes Validity or Binary"),
    (lambda: plot_map(of("numbers"), LINE, "skewness"), "GPyTorchPosterior has no skewness"),
    (lambda: plot_map(of("ensemble"), SQUARE, "skewness"), "SkewGPEnsemblePosterior has no skewness"),
    (lambda: plot_map(of("three inputs"), CUBE), r"got 3\. Hold others fixed by equal bounds; plot_slices"),
    (lambda: plot_threshold(of("labels"), LINE, 0.6), "two inputs"),
]


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [(InputDataError, *entry) for entry in REFUSED] + [(UnsupportedError, *entry) for entry in UNSUPPORTED],
)
def test_errors(error, call, message):
    with pytest.raises(error, match=message):
        call()
    assert pyplot.get_fignums() == []


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
    told = {text.get_text() for text in wide[0].get_legend().get_texts()}
    assert told == {"50% band", "shared", "a judge, 50% interval"}
    for bad in ({"names": ["ann"]}, {"inputs": ["sweet"]}, {"ax": wide[0]}):
        with pytest.raises(InputDataError, match="must hold"):
            plot_tastes(summary, **bad)
    for bad in ({"names": 2}, {"names": "ab"}, {"inputs": 2}):
        with pytest.raises(InputDataError, match="must be a list of 2 names"):
            plot_tastes(summary, **bad)
    with pytest.raises(InputDataError, match=r"judge_summary\(model\) returns; got SkewGP"):
        plot_tastes(model)


def test_a_leaderboard_shows_what_its_table_says():
    model = item_model(4, Preference([[2, 0], [2, 1], [0, 1], [2, 3]]), approximation="ep")
    table = leaderboard(model, ["a", "b", "c", "d"])
    ax = plot_leaderboard(table)
    assert [label.get_text() for label in ax.get_yticklabels()] == table.index.tolist()
    lines = next(entry for entry in ax.collections if isinstance(entry, LineCollection))
    for i, segment in enumerate(lines.get_segments()):
        assert segment[:, 0].tolist() == [table.lower.iloc[i], table.upper.iloc[i]]
        assert segment[:, 1].tolist() == [i, i]
    texts = [text.get_text() for text in ax.texts]
    assert f"{table.p_best.iloc[0]:.2f}" in texts
    assert ax.yaxis_inverted()
    assert len(plot_leaderboard(table, num_items=2).get_yticklabels()) == 2


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
    learned = SkewGP(X, Preference([[0, 1]]), input_transform=Normalize(dim))
    before = learned.input_transform.bounds.clone()
    assert plot_map(learned, 9 * bounds, of=lambda X: torch.zeros(len(X))).texts
    assert torch.equal(learned.input_transform.bounds, before)
    assert learned.input_transform.training


def test_a_summary_has_a_line_for_each_row_and_infinite_ends_leave_the_picture():
    index = pandas.MultiIndex.from_tuples([("all", "size", ""), ("ann", "brand", "s")])
    table = pandas.DataFrame({"median": [1.0, 2.0], "lower": [0.5, 1.0], "upper": [1.5, np.inf]}, index=index)
    ax = plot_summary(table)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["all size", "ann brand s"]
    left, right = ax.get_xlim()
    ends = [path.vertices[:, 0] for path in ax.collections[0].get_paths()]
    assert left < ends[0][0] == 0.5
    assert ends[0][1] == 1.5
    assert ends[1][1] > right > 2.0
    with pytest.raises(InputDataError, match="must have rows and columns"):
        plot_summary(table.drop(columns="lower"))


def test_curves_of_events_are_drawn_with_bands():
    rows = [(curve, time) for curve in ("low", "high") for time in (1.0, 2.0, 4.0)]
    index = pandas.MultiIndex.from_tuples(rows, names=["curve", "time"])
    mean = np.array([0.1, 0.2, 0.5, 0.3, 0.6, 0.9])
    ax = plot_summary(pandas.DataFrame({"mean": mean, "lower": mean - 0.05, "upper": mean + 0.05}, index=index))
    assert [line.get_label() for line in ax.lines] == ["low", "high"]
    assert ax.lines[1].get_ydata().tolist() == [0.3, 0.6, 0.9]
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(0.05)
    assert band[:, 1].max() == pytest.approx(0.55)


def test_summaries_of_many_people_are_of_one_size_and_in_order():
    rows = [(f"p{person}", name, "") for person in range(300) for name in ("price", "size")]
    index = pandas.MultiIndex.from_tuples(rows, names=["person", "attribute", "value"])
    mean = np.random.default_rng(0).standard_normal(600)
    table = pandas.DataFrame({"mean": mean, "lower": mean - 1, "upper": mean + 1}, index=index)
    ax = plot_summary(table)
    assert ax.figure.get_size_inches()[1] < 11
    assert [label.get_text() for label in ax.get_yticklabels()] == ["price", "size"]
    assert ax.get_yticks().tolist() == [150, 450]
    drawn = ax.collections[1].get_offsets()[:, 0]
    assert np.array_equal(drawn, np.concatenate([np.sort(mean[::2]), np.sort(mean[1::2])]))


def test_pictures_of_tastes_do_not_grow_with_many_judges():
    pairs = torch.tensor([[0, 1], [1, 2], [2, 0]]).repeat(30, 1)
    X = torch.tensor([[0.0], [0.4], [1.0]], dtype=torch.double)
    model = SkewGP(X, Preference(pairs, judge=torch.arange(90) % 45), approximation="ep")
    panels = plot_tastes(judge_summary(model))
    assert panels[0].figure.get_size_inches()[1] < 11
    (means,) = [line.get_xdata() for line in panels[0].lines if len(line.get_xdata()) == 45]
    assert (means[1:] >= means[:-1]).all()
    assert not panels[0].get_yticks().tolist()
