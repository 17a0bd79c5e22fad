"""Warm starts between models of other data, kinds and constraints."""

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

from botorch_skewgp import SkewGP
from botorch_skewgp.fitting import fit_skew_gp, warm_start
from botorch_skewgp.likelihoods import MixedLikelihood, NumericLikelihood, PreferenceLikelihood
from botorch_skewgp.observations import Binary, Numeric, Ordinal, Preference, Validity

X = torch.rand(8, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
DUELS = Preference([[0, 1], [2, 1], [2, 3], [4, 5], [6, 7]])
NUMBERS = Numeric([0.3, -0.6, 0.8], index=[0, 1, 2])


def lengthscale(model):
    return model.covar_module.base_kernel.lengthscale


def test_comparisons_first_and_numbers_later():
    """The advertised case: the kernel goes on, and each noise is that of its own kind."""
    first = SkewGP(X, DUELS, PreferenceLikelihood(0.7, learn_noise=True))
    fit_skew_gp(first, optimizer_kwargs={"options": {"maxiter": 5}})
    more = SkewGP(X, [NUMBERS, DUELS])
    before = more.likelihood.for_kind(Numeric).noise.item()
    done = warm_start(more, first)
    assert torch.allclose(lengthscale(more), lengthscale(first))
    assert more.covar_module.outputscale.item() == pytest.approx(first.covar_module.outputscale.item())
    assert more.likelihood.for_kind(Preference).noise.item() == pytest.approx(first.likelihood.noise.item())
    assert more.likelihood.for_kind(Numeric).noise.item() == before
    assert "likelihood._likelihoods.Numeric.raw_noise" in done.left
    assert "likelihood._likelihoods.Preference.raw_noise" in done.copied
    assert set(done.copied) | set(done.left) == {name for name, p in more.named_parameters() if p.requires_grad}
    fit_skew_gp(more, optimizer_kwargs={"options": {"maxiter": 3}})


def test_parts_are_found_in_any_order_and_back():
    noises = {"numbers": 0.2, "duels": 0.6}

    def mixed(numbers_first):
        parts = [NumericLikelihood(noises["numbers"]), PreferenceLikelihood(noises["duels"], learn_noise=True)]
        return SkewGP(X, [NUMBERS, DUELS], MixedLikelihood(*(parts if numbers_first else parts[::-1])))

    source = mixed(True)
    source.likelihood.for_kind(Numeric).noise = 0.05
    source.likelihood.for_kind(Preference).noise = 0.9
    target = mixed(False)
    assert warm_start(target, source).left == ()
    assert target.likelihood.for_kind(Numeric).noise.item() == pytest.approx(0.05)
    assert target.likelihood.for_kind(Preference).noise.item() == pytest.approx(0.9)
    alone = SkewGP(X, DUELS, PreferenceLikelihood(learn_noise=True))
    warm_start(alone, source)
    assert alone.likelihood.noise.item() == pytest.approx(0.9)


@pytest.mark.parametrize("labels", [Binary([1, 0], index=[3, 4]), Ordinal([1, 0, 3], 4, index=[3, 4, 5])])
def test_the_level_of_labels_stays_where_it_was_in_units_of_the_outcome(labels):
    first, more = (
        SkewGP(X, [Numeric(values, index=range(len(values))), labels], outcome_transform=Standardize(m=1))
        for values in ([10.0, 12.0, 14.0], [10.0, 12.0, 14.0, 40.0])
    )
    level = first.likelihood.for_kind(type(labels)).shift
    with torch.no_grad():
        level.fill_(0.5)
    assert first.outcome_scale.unstandardize(level).item() == pytest.approx(13.0)
    warm_start(more, first)
    level = more.likelihood.for_kind(type(labels)).shift
    assert more.outcome_scale.unstandardize(level).item() == pytest.approx(13.0)


def test_values_are_copied_through_other_constraints():
    def model_of(constraint, kernel=RBFKernel):
        covar_module = ScaleKernel(kernel(ard_num_dims=2), outputscale_constraint=constraint)
        return SkewGP(X, DUELS, covar_module=covar_module)

    source = model_of(GreaterThan(1e-4))
    source.covar_module.outputscale, source.covar_module.base_kernel.lengthscale = 3.0, 0.4
    target = model_of(Interval(0.5, 5.0), MaternKernel)
    assert "covar_module.raw_outputscale" in warm_start(target, source).copied
    assert target.covar_module.outputscale.item() == pytest.approx(3.0)
    assert torch.allclose(lengthscale(target), lengthscale(source))
    source.covar_module.outputscale = 7.0
    assert "covar_module.raw_outputscale" in warm_start(target, source).left
    assert target.covar_module.outputscale.item() == pytest.approx(3.0)


def test_other_shapes_and_fixed_parameters_stay():
    source = SkewGP(X, DUELS)
    source.covar_module.base_kernel.lengthscale = 0.123
    other_inputs = SkewGP(X[:, :1], DUELS)
    before = lengthscale(other_inputs).clone()
    assert "covar_module.base_kernel.raw_lengthscale" in warm_start(other_inputs, source).left
    assert torch.equal(lengthscale(other_inputs), before)
    fixed = SkewGP(X, DUELS)
    fixed.covar_module.base_kernel.requires_grad_(False)
    before = lengthscale(fixed).clone()
    done = warm_start(fixed, source)
    assert not any("lengthscale" in name for name in [*done.copied, *done.left])
    assert torch.equal(lengthscale(fixed), before)


def test_the_model_that_values_come_from_is_left_alone():
    source, target = SkewGP(X, DUELS), SkewGP(X, [DUELS, Validity([1, 0, 1])])
    source.covar_module.outputscale = 5.0
    warm_start(target, source)
    target.covar_module.outputscale = 2.0
    assert source.covar_module.outputscale.item() == pytest.approx(5.0)


def test_refuses_other_models():
    gp = SingleTaskGP(X, X.sum(-1, keepdim=True))
    for pair in ((SkewGP(X, DUELS), gp), (gp, SkewGP(X, DUELS))):
        with pytest.raises(UnsupportedError, match="got SingleTaskGP"):
            warm_start(*pair)
