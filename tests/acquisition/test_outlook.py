"""The gain of an answer against fresh models that have seen it, and against its definition by Monte Carlo."""

import pytest
import torch
from acquisition_checks import DOUBLE, POINTS, gain, make_model, points, samples
from botorch.models.transforms.outcome import Standardize

from botorch_skewgp.acquisition.outlook import Asked, Belief, _single_outcome_means
from botorch_skewgp.likelihoods import PreferenceLikelihood
from botorch_skewgp.observations import Numeric, Preference


def test_look_ahead_is_the_posterior_of_a_model_with_the_duel(generator):
    """Means given either outcome, and the outcome's probability, against fresh draws of larger models."""
    model = make_model(num_draws=8192, likelihood=PreferenceLikelihood(noise=0.1))
    pair = POINTS[:2] + 0.05
    joint = torch.cat([pair, points(generator, q=5)])
    asked = Asked(model.likelihood.reading(Preference, joint, model.outcome_scale))
    belief = Belief.of(model.latent_posterior(joint), model.outcome_scale, 8192)
    means = _single_outcome_means(belief, asked, torch.tensor([[0, 1]]), torch.arange(7))
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


@pytest.mark.parametrize("width", [0.0, 0.6])
def test_value_by_monte_carlo(width, generator):
    """Posterior means given each outcome times its probability, of two or with ties of three outcomes."""
    likelihood = PreferenceLikelihood(noise=0.3, tie_width=width, ties_allowed=True) if width else None
    model, N = make_model(likelihood=likelihood), 400_000
    noise = 2 * (0.3 if width else 1.0)
    pair, X = points(generator, q=2), points(generator, q=4)
    value = float(gain(model, pair.unsqueeze(0), torch.cat([pair, X]), Preference))
    f = samples(model.posterior(torch.cat([pair, X])), N, generator)
    d = f[:, 0] - f[:, 1] + noise**0.5 * torch.randn(N, generator=generator, dtype=DOUBLE)

    def gain_of(outcomes):
        """Mean and standard error: the best point for the outcome of each draw against the best one before."""
        best = sum(o.long() * (o.double().unsqueeze(-1) * f).mean(0).argmax() for o in outcomes)
        change = f.gather(-1, best.unsqueeze(-1)).squeeze(-1) - f[:, f.mean(0).argmax()]
        return change.mean().item(), change.std().item() / N**0.5

    expected, error = gain_of([d > width, d <= -width, (d > -width) & (d <= width)])
    assert abs(value - expected) < 4.5 * error
    if width:
        assert abs(expected - gain_of([d > 0, d <= 0])[0]) > 9 * error  # ties taken for wins or losses would be seen


def test_location_of_the_outcome_does_not_count(generator):
    values = 50 + torch.randn(7, generator=generator, dtype=DOUBLE)
    X, candidates = points(generator, 3, q=2), points(generator, q=5)

    def value(y, **options):
        return gain(make_model([Preference([[0, 1]]), Numeric(y)], 64, **options), X, candidates, Preference)

    scaled = value(values, outcome_transform=Standardize(m=1))
    torch.testing.assert_close(
        scaled, values.std() * value((values - values.mean()) / values.std()), rtol=1e-3, atol=1e-8
    )


def test_never_negative_zero_for_nothing_and_in_either_order(generator):
    model, X, candidates = make_model(), points(generator, 100, q=2), points(generator, q=6)
    found = gain(model, X, candidates, Preference)
    assert (found >= -1e-12).all()
    torch.testing.assert_close(found, gain(model, X.flip(-2), candidates, Preference))
    same = gain(model, X[:5, :1].expand(5, 2, 2), candidates, Preference)
    torch.testing.assert_close(same, torch.zeros(5, dtype=DOUBLE), rtol=0, atol=1e-9)
