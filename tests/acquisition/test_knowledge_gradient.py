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
from botorch_skewgp.acquisition.knowledge_gradient import SkewKnowledgeGradient
from botorch_skewgp.acquisition.outlook import Asked, Belief, Best, Outlook
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.observations import Binary, Numeric, Preference


@pytest.fixture(scope="module")
def model() -> SkewGP:
    return make_model()


TIES = {"likelihood": PreferenceLikelihood(noise=0.3, tie_width=0.6, ties_allowed=True)}


def test_optimisation(model, generator):
    acquisition = SkewKnowledgeGradient(model)
    pair, value = optimize_acqf(acquisition, BOUNDS, q=2, num_restarts=4, raw_samples=64)
    assert pair.shape == (2, 2)
    with torch.no_grad():
        assert value >= acquisition(points(generator, 100, q=2)).max()


def test_look_ahead_is_the_posterior_of_a_model_with_the_duel(generator):
    """Means given either outcome, and the outcome's probability, against fresh draws of larger models."""
    model = make_model(num_draws=8192, likelihood=PreferenceLikelihood(noise=0.1))
    pair = POINTS[:2] + 0.05
    X = points(generator, q=5)
    joint = torch.cat([pair, X])
    asked = Asked(model.likelihood.reading(Preference, joint, model.outcome_scale))
    belief = Belief.of(model.latent_posterior(joint), model.outcome_scale, 8192)
    outlook = Outlook([belief], [asked], Best(torch.arange(7)))
    _, means = outlook._means(belief, asked, torch.tensor([[0, 1]]))
    won, lost = means[0, 0, [asked.reading.highest, 1 - asked.reading.highest]]
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
    value = SkewKnowledgeGradient(model, X_candidates=X)(pair).item()
    f = samples(model.posterior(torch.cat([pair, X])), N, generator)
    d = f[:, 0] - f[:, 1] + 2**0.5 * torch.randn(N, generator=generator, dtype=DOUBLE)
    wins = (d > 0).double().unsqueeze(-1)
    expected = (wins * f).mean(0).max() + ((1 - wins) * f).mean(0).max() - f.mean(0).max()
    assert abs(value - expected.item()) < 4.5 * 3 * f.std().item() / N**0.5


def test_ties_are_a_third_outcome(generator):
    """Exact in the draws: posterior means given each outcome times its probability, all three of them."""
    model, N = make_model(**TIES), 400_000
    pair, X = points(generator, q=2), points(generator, q=4)
    value = SkewKnowledgeGradient(model, X_candidates=X)(pair).item()
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


def test_location_of_the_outcome_does_not_count(generator):
    values = 50 + torch.randn(7, generator=generator, dtype=DOUBLE)
    make = lambda y, **options: make_model([Preference(PAIRS), Numeric(y)], 64, **options)  # noqa: E731
    X = points(generator, 3, q=2)
    scaled = SkewKnowledgeGradient(make(values, outcome_transform=Standardize(m=1)))(X)
    standard = SkewKnowledgeGradient(make((values - values.mean()) / values.std()))(X)
    torch.testing.assert_close(scaled, values.std() * standard, rtol=1e-3, atol=1e-8)


def test_never_negative_and_zero_for_nothing(model, generator):
    acquisition = SkewKnowledgeGradient(model)
    assert (acquisition(points(generator, 100, q=2)) >= -1e-12).all()
    same = points(generator, 5, q=2)[:, :1].expand(5, 2, 2)
    torch.testing.assert_close(acquisition(same), torch.zeros(5, dtype=DOUBLE), rtol=0, atol=1e-9)


def test_order_of_the_pair_does_not_matter(model, generator):
    X = points(generator, 5, q=2)
    acquisition = SkewKnowledgeGradient(model)
    torch.testing.assert_close(acquisition(X), acquisition(X.flip(-2)))


def test_input_transform(model, generator):
    X = points(generator, 4, q=2)
    transformed = make_model(input_transform=Normalize(2, bounds=BOUNDS))
    torch.testing.assert_close(SkewKnowledgeGradient(transformed)(X), SkewKnowledgeGradient(model)(X))
    perturbed = make_model(
        num_draws=64, input_transform=InputPerturbation(torch.tensor([[0.0, 0.0], [0.1, 0.1]], dtype=DOUBLE))
    )
    with pytest.raises(UnsupportedError, match="one point into many"):
        SkewKnowledgeGradient(perturbed)(X)


def test_moves_with_its_model(generator):
    acquisition = SkewKnowledgeGradient(make_model(num_draws=64)).to(torch.float32)
    assert acquisition(points(generator, 2, q=2).float()).dtype == torch.float32


def test_what_is_refused(model):
    with pytest.raises(UnsupportedError, match="SingleTaskGP"):
        SkewKnowledgeGradient(SingleTaskGP(POINTS, POINTS.sum(-1, keepdim=True)))
    with pytest.raises(InputDataError, match="kind must be a class of observations such as Preference; got a Tensor"):
        SkewKnowledgeGradient(model, POINTS)
    with pytest.raises(InputDataError, match="takes Binary"):
        SkewKnowledgeGradient(make_model(Binary(torch.ones(7))), kind=Preference)
    for X in (torch.zeros(0, 2), torch.zeros(3), torch.zeros(3, 3)):
        with pytest.raises(BotorchTensorDimensionError, match="n x 2"):
            SkewKnowledgeGradient(model, X_candidates=X)
    with pytest.raises(UnsupportedError, match="pending"):
        SkewKnowledgeGradient(model).set_X_pending(POINTS)
