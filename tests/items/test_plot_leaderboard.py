"""What the picture of a leaderboard shows is what its table says."""

from matplotlib.collections import LineCollection

from botorch_skewgp.items import item_model, leaderboard
from botorch_skewgp.observations import Preference
from botorch_skewgp.plots import plot_leaderboard


def test_intervals_names_and_probabilities():
    model = item_model(4, Preference([[2, 0], [2, 1], [0, 1], [2, 3]]), approximation="ep")
    table = leaderboard(model, ["a", "b", "c", "d"])
    ax = plot_leaderboard(table)
    assert [label.get_text() for label in ax.get_yticklabels()] == table.index.tolist()
    lines = next(entry for entry in ax.collections if isinstance(entry, LineCollection))
    for i, segment in enumerate(lines.get_segments()):
        assert segment[:, 0].tolist() == [table.utility_low.iloc[i], table.utility_high.iloc[i]]
        assert segment[:, 1].tolist() == [i, i]
    texts = [text.get_text() for text in ax.texts]
    assert f"{table.p_best.iloc[0]:.2f}" in texts
    assert ax.yaxis_inverted()
    assert len(plot_leaderboard(table, num_items=2).get_yticklabels()) == 2
