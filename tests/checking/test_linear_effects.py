"""The tastes of a table of judges against the posterior that it sums up, whatever the model makes of its inputs."""

from functools import partial

import pytest
import torch
from botorch.models.transforms import Standardize
from botorch.models.transforms.input import ChainedInputTransform, Log10, Normalize, NumericToCategoricalEncoding
from judge_cases import own_kernel
from torch.nn.functional import one_hot

from botorch_skewgp import SkewGP
from botorch_skewgp.checking import judge_summary
from botorch_skewgp.checking.linear_effects import Effect
from botorch_skewgp.kernels.items import ItemEffectKernel
from botorch_skewgp.observations import Numeric, Preference
from botorch_skewgp.plots import plot_tastes
from botorch_skewgp.plots.style import new_panels

double = torch.double
NUM = 18
PRICE = torch.rand(NUM, dtype=double, generator=torch.Generator().manual_seed(0))
BRAND = torch.arange(NUM) % 3  # brand 1 is dear, and liked
POINTS = torch.stack([PRICE + 2 * (BRAND == 1), BRAND.to(double)], dim=-1)
LIKED = 3.0 * (BRAND == 1) - PRICE
PAIRS = torch.tensor([[i, (i + 1 + i % 5) % NUM] for i in range(NUM)])
ANSWERS = Preference(PAIRS.gather(-1, LIKED[PAIRS].argsort(-1, descending=True)), judge=torch.arange(NUM) % 2)
# by hand: a constant, the price, and the difference of brands 1 and 2 from brand 0
DESIGN = torch.stack([torch.ones(NUM), POINTS[:, 0] - POINTS[:, 0].mean(), BRAND == 1, BRAND == 2], dim=-1).to(double)


def encoding():
    return NumericToCategoricalEncoding(2, {1: 3}, {1: partial(one_hot, num_classes=3)})


def made(observations=ANSWERS, points=POINTS, **options):
    defaults = {"covar_module": own_kernel(), "judge_covar_module": own_kernel(), "approximation": "ep"}
    return SkewGP(points, observations, **defaults | options).eval()


def check_tastes(model, points, design):
    """Means and intervals are those of a linear map of each judge's posterior, in closed form."""
    summary = judge_summary(model, X=points, num_samples=4096)
    for row, judge in enumerate((None, *summary.judges)):
        effects = model.posterior(points, judge=judge).affine(torch.linalg.pinv(design))
        mean, deviation = effects.mean.squeeze(-1)[1:], effects.variance.squeeze(-1)[1:].sqrt()
        assert bool(((summary.mean[row, 1:] - mean).abs() < 5 * deviation / 4096**0.5).all())
        for ends, level in ((summary.lower, 0.05), (summary.upper, 0.95)):
            expected = mean + torch.special.ndtri(torch.tensor(level, dtype=double)) * deviation
            assert bool(((ends[row, 1:] - expected).abs() < 0.12 * deviation).all())
    return summary


@pytest.mark.parametrize("by", ["the input transform", "a judge's kernel"])
def test_categories_are_compared_with_their_first_level(by):
    options = {"input_transform": encoding()}
    if by == "a judge's kernel":
        options = {"judge_covar_module": own_kernel() + ItemEffectKernel(active_dims=[1])}
    summary = check_tastes(made(**options), POINTS, DESIGN)
    assert summary.effects == (Effect(0), Effect(1, 1.0, 0.0), Effect(1, 2.0, 0.0))
    assert summary.columns()["attribute"][1:4] == ["x0", "x1=1", "x1=2"]
    assert summary.directions.weights.shape[-1] == 3
    panels = plot_tastes(summary, inputs=["price", "brand"], ax=new_panels(None, 3, (2.0, 2.0)))
    assert [panel.get_xlabel() for panel in panels] == ["taste for price", "taste for brand=1", "taste for brand=2"]


def test_slopes_in_inputs_on_a_log_scale_are_by_tenfold():
    dose = 10 ** (4 * PRICE - 2)
    points = torch.stack([dose, BRAND.to(double)], dim=-1)
    transform = ChainedInputTransform(log=Log10([0]), encoded=encoding(), scaled=Normalize(4))
    design = torch.cat([DESIGN[:, :1], (4 * PRICE).unsqueeze(-1), DESIGN[:, 2:]], dim=-1)
    summary = check_tastes(made(points=points, input_transform=transform), points, design)
    assert summary.effects[0].label("dose") == "log10 dose"


def test_tastes_of_models_of_numbers_are_in_their_units():
    numbers = Numeric(100 + 20 * LIKED, judge=torch.arange(NUM) % 2)
    model = made(numbers, input_transform=encoding(), outcome_transform=Standardize(m=1), approximation=None)
    summary = check_tastes(model, POINTS, DESIGN)
    assert summary.mean[0, 2] > 20


def test_tastes_of_judges_with_reliability_are_those_of_their_posteriors():
    model = made(input_transform=encoding(), learn_judge_reliability=True)
    model.judge_reliability.logarithm.data.copy_(torch.tensor([0.0, -1.5]))
    check_tastes(model, POINTS, DESIGN)


def test_an_input_that_hangs_on_a_category_alone_has_an_effect_of_its_own():
    """All points of a brand have one price, so that prices are told apart at points without answers alone."""
    price = torch.tensor([1.0, 3.0, 2.0], dtype=double)[BRAND]
    points = torch.stack([price, BRAND.to(double)], dim=-1)
    summary = judge_summary(made(points=points, input_transform=encoding()))
    assert len(summary.effects) == 3
    assert summary.mean.isfinite().all()


def test_levels_that_only_the_given_points_have_are_no_part_of_another():
    model = made(judge_covar_module=own_kernel() + ItemEffectKernel(active_dims=[1]))
    new = POINTS[:1].index_fill(1, torch.tensor(1), 7.0)
    assert judge_summary(model, X=torch.cat([POINTS, new])).effects[-1] == Effect(1, 7.0, 0.0)
    assert judge_summary(model, X=new.repeat(2, 1)).effects[-1] == Effect(1, 2.0, 0.0)
