"""The knowledge gradient of duels against fresh models that have seen the duel, and against Monte Carlo."""

import pytest
import torch
from acquisition_checks import BOUNDS, DOUBLE, PAIRS, POINTS, make_model, points, samples
from botorch.exceptions.errors import BotorchTensorDimensionError, InputDataError, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import InputPerturbation, Normalize
from botorch.models.transforms.outcome import Standardize
from botorch.optim import optimize_acqf

from botorch_skewgp import SkewGP
from botorch_skewgp.acquisition.knowledge_gradient import (
    DuelingKnowledgeGradient,
    OneShotDuelingKnowledgeGradient,
    SkewKnowledgeGradient,
)
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.observations import Binary, Numeric, Preference


@pytest.fixture(scope="module")
def model() -> SkewGP:
    return make_model()


ACQUISITIONS = {
    "over candidates": (DuelingKnowledgeGradient, 2),
    "over candidates alone": (lambda model: DuelingKnowledgeGradient(model, include_pair=False), 2),
    "one shot": (OneShotDuelingKnowledgeGradient, 4),
}
every = pytest.mark.parametrize("name", ACQUISITIONS)


TIES = {"likelihood": PreferenceLikelihood(noise=0.3, tie_width=0.6, ties_allowed=True)}


@every
def test_optimisation(model, name, generator):
    make, q = ACQUISITIONS[name]
    acquisition = make(model)
    pair, value = optimize_acqf(acquisition, BOUNDS, q=q, num_restarts=4, raw_samples=64)
    assert pair.shape == (2, 2)
    with torch.no_grad():
        assert value >= acquisition(points(generator, 100, q=q)).max()


def test_look_ahead_is_the_posterior_of_a_model_with_the_duel(generator):
    """Means given either outcome, and the outcome's probability, against fresh draws of larger models."""
    model = make_model(num_draws=8192, likelihood=PreferenceLikelihood(noise=0.1))
    pair = POINTS[:2] + 0.05
    X = points(generator, q=5)
    acquisition = DuelingKnowledgeGradient(model)
    joint = torch.cat([pair, X])
    won, lost = acquisition._outcome_means(joint).unbind(-1)
    posterior = model.posterior(joint)
    torch.testing.assert_close(won + lost, posterior.mean.squeeze(-1))
    p = model.predictive(pair).probs
    between = posterior.variance.squeeze(-1) - posterior.gaussian_variance  # of component means
    error = 4.5 * (2 * between / 6000).sqrt()  # draws of two models; their autocorrelation time is near 1
    surprises = []
    for observed, part, probability in [([[0, 1]], won, p), ([[1, 0]], lost, 1 - p)]:
        fresh = model.condition_on_observations(pair, Preference(torch.tensor(observed)))
        change = fresh.posterior(joint).mean.squeeze(-1) - posterior.mean.squeeze(-1)
        assert ((part / probability - posterior.mean.squeeze(-1) - change).abs() < error).all()
        surprises.append(bool((change.abs() > 3 * error).any()))
    assert any(surprises)  # the duel says something


def test_value_by_monte_carlo(model, generator):
    """The definition, with outcomes drawn and posterior means from the draws that fit them."""
    pair, X, N = points(generator, q=2), points(generator, q=4), 400_000
    for include_pair in (True, False):
        value = DuelingKnowledgeGradient(model, X, include_pair=include_pair)(pair).item()
        joint = torch.cat([pair, X])
        posterior = model.posterior(joint)
        f = samples(posterior, N, generator)
        d = f[:, 0] - f[:, 1] + 2**0.5 * torch.randn(N, generator=generator, dtype=DOUBLE)
        f = f if include_pair else f[:, 2:]
        wins = (d > 0).double().unsqueeze(-1)
        expected = (wins * f).mean(0).max() + ((1 - wins) * f).mean(0).max() - f.mean(0).max()
        assert abs(value - expected.item()) < 4.5 * 3 * f.std().item() / N**0.5


def test_ties_are_a_third_outcome(generator):
    """Exact in the draws: posterior means given each outcome times its probability, all three of them."""
    model, N = make_model(**TIES), 400_000
    pair, X = points(generator, q=2), points(generator, q=4)
    value = DuelingKnowledgeGradient(model, X)(pair).item()
    posterior = model.posterior(torch.cat([pair, X]))
    f = samples(posterior, N, generator)
    d = f[:, 0] - f[:, 1] + 0.6**0.5 * torch.randn(N, generator=generator, dtype=DOUBLE)

    def gain(outcomes):
        """Mean and standard error: the best point for the outcome of each draw against the best one before."""
        best = sum(o.long() * (o.double().unsqueeze(-1) * f).mean(0).argmax() for o in outcomes)
        change = f.gather(-1, best.unsqueeze(-1)).squeeze(-1) - f[:, f.mean(0).argmax()]
        return change.mean().item(), change.std().item() / N**0.5

    expected, error = gain([d > 0.6, d <= -0.6, (d > -0.6) & (d <= 0.6)])
    assert abs(value - expected) < 4.5 * error
    assert abs(expected - gain([d > 0, d <= 0])[0]) > 9 * error  # taking ties for wins or losses would be seen


def test_ties_in_one_shot(generator):
    model = make_model(**TIES)
    grid = torch.rand(6, 2, generator=generator, dtype=DOUBLE)
    pair, one_shot = points(generator, q=2), OneShotDuelingKnowledgeGradient(model)
    assert one_shot.get_augmented_q_batch_size(2) == 5
    first, second, third = torch.meshgrid(*[torch.arange(6)] * 3, indexing="ij")
    X = torch.stack([grid[first], grid[second], grid[third]], dim=-2)
    values = one_shot(torch.cat([pair.expand(6, 6, 6, 2, 2), X], dim=-2))
    nested = DuelingKnowledgeGradient(model, grid, include_pair=False)(pair).squeeze(0)
    torch.testing.assert_close(values.max() - model.posterior(grid).mean.max(), nested)
    with pytest.raises(BotorchTensorDimensionError, match="x 5 x d"):
        one_shot(points(generator, q=4))


@pytest.mark.parametrize("one_shot", [False, True])
def test_location_of_the_outcome_counts(one_shot, generator):
    """Numbers of another location: the one-shot value moves with it, the gain of a duel does not."""
    values = 50 + torch.randn(7, generator=generator, dtype=DOUBLE)
    make = lambda y, **options: make_model([Preference(PAIRS), Numeric(y)], 64, **options)  # noqa: E731
    X = points(generator, 3, q=4 if one_shot else 2)
    acquisition = OneShotDuelingKnowledgeGradient if one_shot else DuelingKnowledgeGradient
    scaled = acquisition(make(values, outcome_transform=Standardize(m=1)))(X)
    standard = acquisition(make((values - values.mean()) / values.std()))(X)
    expected = values.std() * standard + (values.mean() if one_shot else 0.0)
    torch.testing.assert_close(scaled, expected, rtol=1e-3, atol=1e-8)


def test_one_shot_is_the_nested_maximum(model, generator):
    """Maximised over the last two points on a grid it is the value over that grid, up to the present maximum."""
    grid = torch.cartesian_prod(*[torch.linspace(0, 1, 6, dtype=DOUBLE)] * 2)
    pair = points(generator, q=2)
    nested = DuelingKnowledgeGradient(model, grid, include_pair=False)
    one_shot = OneShotDuelingKnowledgeGradient(model)
    first, second = torch.meshgrid(torch.arange(36), torch.arange(36), indexing="ij")
    X = torch.stack([grid[first], grid[second]], dim=-2)
    values = one_shot(torch.cat([pair.expand(36, 36, 2, 2), X], dim=-2))
    present = model.posterior(grid).mean.max()
    torch.testing.assert_close(values.max() - present, nested(pair).squeeze(0))


def test_never_negative_and_zero_for_nothing(model, generator):
    acquisition = DuelingKnowledgeGradient(model)
    assert (acquisition(points(generator, 100, q=2)) >= -1e-12).all()
    same = points(generator, 5, q=2)[:, :1].expand(5, 2, 2)
    torch.testing.assert_close(acquisition(same), torch.zeros(5, dtype=DOUBLE), rtol=0, atol=1e-9)


def test_order_of_the_pair_does_not_matter(model, generator):
    X = points(generator, 5, q=2)
    acquisition = DuelingKnowledgeGradient(model)
    torch.testing.assert_close(acquisition(X), acquisition(X.flip(-2)))


def test_input_transform(model, generator):
    X = points(generator, 4, q=2)
    transformed = make_model(input_transform=Normalize(2, bounds=BOUNDS))
    torch.testing.assert_close(DuelingKnowledgeGradient(transformed)(X), DuelingKnowledgeGradient(model)(X))
    perturbed = make_model(
        num_draws=64, input_transform=InputPerturbation(torch.tensor([[0.0, 0.0], [0.1, 0.1]], dtype=DOUBLE))
    )
    with pytest.raises(UnsupportedError, match="one point into many"):
        DuelingKnowledgeGradient(perturbed)(X)


def test_moves_with_its_model(generator):
    acquisition = DuelingKnowledgeGradient(make_model(num_draws=64)).to(torch.float32)
    assert acquisition(points(generator, 2, q=2).float()).dtype == torch.float32


def test_what_is_refused(model):
    with pytest.raises(UnsupportedError, match="SingleTaskGP"):
        DuelingKnowledgeGradient(SingleTaskGP(POINTS, POINTS.sum(-1, keepdim=True)))
    with pytest.raises(InputDataError, match="kind must be a class of observations such as Preference; got a Tensor"):
        SkewKnowledgeGradient(model, POINTS)
    with pytest.raises(InputDataError, match="takes Binary"):
        DuelingKnowledgeGradient(make_model(Binary(torch.ones(7))))
    for X in (torch.zeros(0, 2), torch.zeros(3), torch.zeros(3, 3)):
        with pytest.raises(BotorchTensorDimensionError, match="n x 2"):
            DuelingKnowledgeGradient(model, X)
    with pytest.raises(UnsupportedError, match="pending"):
        DuelingKnowledgeGradient(model).set_X_pending(POINTS)
    with pytest.raises(UnsupportedError, match="two points"):
        OneShotDuelingKnowledgeGradient(model).get_augmented_q_batch_size(3)
    assert OneShotDuelingKnowledgeGradient(model).get_augmented_q_batch_size(2) == 4
