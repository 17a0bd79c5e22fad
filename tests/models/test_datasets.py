"""What a SkewGP makes of BoTorch's datasets."""

import pytest
import torch
from botorch.exceptions.errors import UnsupportedError
from botorch.utils.containers import DenseContainer, SliceContainer
from botorch.utils.datasets import MultiTaskDataset, RankingDataset, SupervisedDataset

from botorch_skewgp import SkewGP
from botorch_skewgp.observations import Numeric, Preference, Ranking, Tie
from botorch_skewgp.truncated.draws import DrawSettings

SMALL = DrawSettings(num_draws=256)


def supervised(num_outcomes=1, with_noise=False):
    X = torch.rand(4, 2, dtype=torch.float64)
    Y = torch.rand(4, num_outcomes, dtype=torch.float64)
    names = [f"outcome {i}" for i in range(num_outcomes)]
    noise = 0.1 + torch.rand(4, num_outcomes, dtype=torch.float64) if with_noise else None
    return SupervisedDataset(X, Y, Yvar=noise, feature_names=["a", "b"], outcome_names=names)


def ranking(indices, ranks, num_items=5):
    items = torch.rand(num_items, 2, dtype=torch.float64)
    indices, ranks = torch.tensor(indices), torch.tensor(ranks)
    m = indices.shape[-1]
    X = SliceContainer(values=items, indices=indices, event_shape=torch.Size([2 * m]))
    Y = DenseContainer(values=ranks, event_shape=torch.Size([m]))
    return RankingDataset(X, Y, feature_names=["a", "b"], outcome_names=["ranking"])


@pytest.mark.parametrize("with_noise", [False, True])
def test_numbers(with_noise):
    dataset = supervised(with_noise=with_noise)
    model = SkewGP(**SkewGP.construct_inputs(dataset))
    noise = dataset.Yvar.squeeze(-1) if with_noise else None
    direct = SkewGP(dataset.X, Numeric(dataset.Y.squeeze(-1), noise))
    X = torch.rand(3, 2, dtype=torch.float64)
    assert torch.equal(model.posterior(X).mean, direct.posterior(X).mean)


@pytest.mark.parametrize(
    ("ranks", "pairs", "ties"),
    [
        ([[0, 1], [1, 0], [0, 0], [0, 1]], [[0, 1], [1, 2], [4, 0]], [[3, 4]]),
        ([[0, 1], [1, 0], [0, 1], [0, 1]], [[0, 1], [1, 2], [3, 4], [4, 0]], []),
        ([[0, 0], [0, 0], [0, 0], [0, 0]], [], [[0, 1], [2, 1], [3, 4], [4, 0]]),
    ],
)
def test_pairs_and_ties(ranks, pairs, ties):
    """The lower rank wins, wherever it stands; equal ranks are ties."""
    dataset = ranking([[0, 1], [2, 1], [3, 4], [4, 0]], ranks)
    inputs = SkewGP.construct_inputs(dataset)
    assert torch.equal(inputs["train_X"], dataset._X.values)
    found = {type(entry): entry.pairs.tolist() for entry in inputs["observations"]}
    assert found == {kind: wanted for kind, wanted in ((Preference, pairs), (Tie, ties)) if wanted}


def test_longer_rankings_with_ties():
    """Ranks of BoTorch skip numbers after a tie; the items before the gap still beat those after it."""
    dataset = ranking([[4, 2, 0], [1, 3, 0], [0, 1, 2]], [[1, 0, 2], [0, 2, 0], [1, 0, 1]])
    (entry,) = SkewGP.construct_inputs(dataset)["observations"]
    assert isinstance(entry, Ranking)
    places, row = entry.comparisons()
    pairs = entry.items[row.unsqueeze(-1), places]
    found = {(int(r), *pair) for r, pair in zip(row, pairs.tolist(), strict=True)}
    assert found == {(0, 2, 4), (0, 4, 0), (1, 1, 3), (1, 0, 3), (2, 1, 0), (2, 1, 2)}


def test_longer_rankings_in_which_all_are_tied_say_that_these_are_close():
    model = SkewGP(**SkewGP.construct_inputs(ranking([[0, 1, 2]], [[0, 0, 0]])), draw_settings=SMALL)
    assert model.likelihood.raw_tie_width.requires_grad
    weight = torch.tensor([[1.0, -1.0, 0.0], [0.5, 0.5, -1.0]], dtype=torch.float64)
    X = model.train_inputs[0][:3]
    prior = SkewGP(model.train_inputs[0], covar_module=model.covar_module)
    after, before = (one.posterior(X).affine(weight).variance for one in (model, prior))
    assert bool((after < 0.95 * before).all())


def test_several_outcomes():
    with pytest.raises(UnsupportedError, match=r"one outcome; got \['outcome 0', 'outcome 1'\].*ModelList"):
        SkewGP.construct_inputs(supervised(num_outcomes=2))


def test_tasks():
    datasets = []
    for task in (0.0, 1.0):
        X, Y = torch.tensor([[0.1, task], [0.7, task]]).double(), torch.rand(2, 1).double()
        names = {"feature_names": ["a", "task"], "outcome_names": [f"outcome {task}"]}
        datasets.append(SupervisedDataset(X, Y, **names))
    dataset = MultiTaskDataset(datasets, target_outcome_name="outcome 0.0", task_feature_index=-1)
    with pytest.raises(UnsupportedError, match="no tasks"):
        SkewGP.construct_inputs(dataset)
