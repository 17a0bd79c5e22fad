"""Class labels as preferences between labels."""

import torch

from botorch_skewgp.observations import LabelPreference


def test_classes_beat_every_other_label_in_one_event():
    observation = LabelPreference.from_classes(torch.tensor([2, 0]), 3, index=torch.tensor([5, 6]))
    assert observation.labels.tolist() == [[2, 0], [2, 1], [0, 1], [0, 2]]
    assert observation.index.tolist() == [5, 5, 6, 6]
    assert observation.event.tolist() == [0, 0, 1, 1]
