"""Coverage of intervals of part-worths, willingness to pay, shares and best items, on made-up populations.

Three kinds: normal tastes, three segments, and an ideal price of each person (curved). Each line has the share of true
values that 90 % intervals hold, and the adjusted Rand index of segments beside k-means of posterior mean tastes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch

from botorch_skewgp.fitting import fit_panel
from botorch_skewgp.frames import read_choices
from botorch_skewgp.summaries import part_worths, segments, shares, tastes, top_items, willingness_to_pay

KINDS = "normal", "segments", "curved"
BRANDS = "north", "south", "east"
NUM_PEOPLE, NUM_TRIPS, NUM_OPTIONS = 60, 8, 3
MANY = 20000  # people of whom the population's truth is an average
OFFER = pd.DataFrame({"price": [1.0, 2.0, 1.5], "size": [0.4, 0.9, 0.6], "brand": list(BRANDS)}, index=list("abc"))
AFTER = OFFER.assign(price=[1.5, 2.0, 1.5])


class Population:
    """Made-up people: `coefficients` of price, size and the second and third brand, and a segment of each."""

    def __init__(self, kind: str, number: int, draws: np.random.Generator) -> None:
        mean = np.array([-1.2, 1.5, 0.8, -0.4])
        self.segment = draws.integers(3, size=number)
        if kind == "segments":
            centres = np.array([[-2.5, 0.5, 0.0, 0.0], [-0.8, 3.0, 1.5, 0.0], [-0.8, 0.5, -1.0, 2.0]])
            self.coefficients = centres[self.segment] + 0.2 * draws.standard_normal((number, 4))
        else:
            self.coefficients = mean + draws.standard_normal((number, 4)) * np.array([0.5, 0.8, 0.8, 0.8])
        self.curve = 4.0 if kind == "curved" else 0.0  # of all, in size around .6

    def utility(self, price: Any, size: Any, brand: Any) -> np.ndarray:
        """Utilities of alternatives, `people x ...`."""
        b = self.coefficients
        columns = [np.asarray(price), np.asarray(size), np.asarray(brand) == BRANDS[1], np.asarray(brand) == BRANDS[2]]
        linear = sum(b[:, i].reshape(-1, *[1] * columns[0].ndim) * column for i, column in enumerate(columns))
        return linear - self.curve * (columns[1] - 0.6) ** 2

    def share(self, offer: pd.DataFrame, draws: np.random.Generator) -> np.ndarray:
        """The average probability of each alternative, by simulation of an answer's noise."""
        utility = self.utility(offer.price, offer["size"], offer.brand)
        repeats = max(1, 200000 // len(utility))
        noisy = utility + draws.standard_normal((repeats, *utility.shape))
        return np.bincount(noisy.argmax(-1).ravel(), minlength=len(offer)) / noisy[..., 0].size


def made_up(kind: str, draws: np.random.Generator) -> tuple[Population, pd.DataFrame]:
    """People, and their choices in long format."""
    people = Population(kind, NUM_PEOPLE, draws)
    shape = NUM_TRIPS, NUM_OPTIONS
    price, size = draws.uniform(0.5, 3.0, shape).round(2), draws.uniform(0.0, 1.0, shape).round(2)
    brand = np.array([draws.permutation(BRANDS) for _ in range(NUM_TRIPS)])
    rows = []
    for person in range(NUM_PEOPLE):
        price, size = draws.uniform(0.5, 3.0, shape).round(2), draws.uniform(0.0, 1.0, shape).round(2)
        utility = people.utility(price, size, brand)[person]
        best = (utility + draws.standard_normal(shape)).argmax(-1)
        for trip in range(NUM_TRIPS):
            for i in range(NUM_OPTIONS):
                rows.append((person, trip, price[trip, i], size[trip, i], brand[trip, i], int(i == best[trip])))
    return people, pd.DataFrame(rows, columns=["id", "trip", "price", "size", "brand", "chosen"])


def held(table: pd.DataFrame, truth: np.ndarray) -> float:
    """The share of true values between `lower` and `upper`."""
    return float(((table.lower.to_numpy() <= truth) & (truth <= table.upper.to_numpy())).mean())


def run(kind: str, seed: int) -> dict[str, float]:
    """Coverage for one made-up population."""
    draws = np.random.default_rng(seed)
    people, frame = made_up(kind, draws)
    answers = read_choices(frame, "trip", "chosen", ["price", "size", "brand"], "id")
    start = time.process_time()
    model = fit_panel(answers.train_X, answers.observations, answers.categories)
    found = {"fit s": time.process_time() - start}
    start = time.process_time()
    worths = part_worths(model, answers, people="each")
    truth = []
    for person in answers.people or ():
        of_person = worths.loc[person]
        for name in answers.attributes:
            values = of_person.loc[name].index.tolist()
            base: dict[str, Any] = {"price": [1.0], "size": [0.6], "brand": ["north"]}
            cells = {**{key: cell * len(values) for key, cell in base.items()}, name: values}
            utility = people.utility(cells["price"], cells["size"], cells["brand"])[person]
            truth.append(utility - utility.mean())
    found["part-worths"] = held(worths, np.concatenate(truth))
    paid = willingness_to_pay(model, answers, people="each")
    found["wtp, brands"] = coverage_of_wtp(paid, people, answers)
    of_known = shares(model, answers, OFFER, AFTER)
    truths = [people.share(OFFER, draws), people.share(AFTER, draws)]
    found["shares, known"] = held(of_known, np.concatenate([*truths, truths[1] - truths[0]]))
    everybody = Population(kind, MANY, draws)
    truths = [everybody.share(OFFER, draws), everybody.share(AFTER, draws)]
    of_new = shares(model, answers, OFFER, AFTER, people="new")
    found["shares, new"] = held(of_new, np.concatenate([*truths, truths[1] - truths[0]]))
    best = top_items(model, answers, 1, offer=OFFER)
    utility = people.utility(OFFER.price, OFFER["size"], OFFER.brand)
    is_best = [OFFER.index[utility[person].argmax()] == item for (person, _), item in best["item"].items()]
    found["top: said"], found["top: true"] = float(best.p_top.mean()), float(np.mean(is_best))
    if kind == "segments":
        found |= rand_indices(model, answers, people)
    found["tables s"] = time.process_time() - start
    return found


def coverage_of_wtp(table: pd.DataFrame, people: Population, answers: Any) -> float:
    """Of the second and third brand beside the first in the alphabet."""
    first, *others = answers.levels["brand"]
    worth = {
        "north": 0.0 * people.coefficients[:, 0],
        "south": people.coefficients[:, 2],
        "east": people.coefficients[:, 3],
    }
    slope = people.coefficients[:, 0]
    truth = []
    for person in answers.people:
        difference = [worth[name][person] - worth[first][person] for name in others]
        truth += [d / -slope[person] if slope[person] < 0 else np.sign(d) * np.inf for d in difference]
    return held(table.xs("brand", level="attribute"), np.array(truth))


def rand_indices(model: Any, answers: Any, people: Population) -> dict[str, float]:
    """Adjusted Rand indices with the true segments, of segments and of k-means of posterior mean tastes."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    by_evidence, given = segments(model, answers), segments(model, answers, k=3)
    scores = tastes(model, answers, people="each")["mean"].unstack(["attribute", "value"])
    scores = scores.loc[list(answers.people)]
    means = KMeans(3, n_init=10, random_state=0).fit_predict(scores / scores.std())
    true = people.segment[list(answers.people)]
    return {
        "k": len(by_evidence.sizes),
        "rand": adjusted_rand_score(true, by_evidence.memberships.segment),
        "rand, k given": adjusted_rand_score(true, given.memberships.segment),
        "rand, k-means": adjusted_rand_score(true, means),
    }


def main(argv: list[str] | None = None, show: Callable[[str], Any] = print) -> None:
    """Print a line for each population, and their means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5))
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    rows: dict[str, list[dict[str, float]]] = {}
    for seed in options.seeds:
        for kind in options.kinds:
            found = run(kind, seed)
            rows.setdefault(kind, []).append(found)
            show(f"{kind} {seed}: " + ", ".join(f"{name} {value:.2f}" for name, value in found.items()))
    for kind, of_kind in rows.items():
        means = pd.DataFrame(of_kind).mean()
        show(f"{kind}, mean of {len(of_kind)}: " + ", ".join(f"{name} {value:.3f}" for name, value in means.items()))


if __name__ == "__main__":
    main()
