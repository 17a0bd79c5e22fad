"""Frames in long format: the points and observations of what they say, and errors that name rows."""

from decimal import Decimal
from io import StringIO

import pandas
import pytest
import torch
from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import InputDataWarning

from botorch_skewgp.frames import habits, read_choices, read_event_times, read_grades, read_rankings
from botorch_skewgp.observations import Choice, ChoiceOrNone, Preference, Tie

TRIPS = {
    "id": ["bob", "bob", "bob", "ann", "ann", "ann", "ann", "bob", "bob"],
    "trip": [1, 1, 1, 1, 1, 2, 2, 2, 2],
    "mode": ["bus", "car", "air", "car", "none", "bus", "car", "car", "none"],
    "price": [2.0, 5.0, 9.0, 5.0, None, 2.0, 4.0, 4.0, None],
    "chosen": [0, 1, 0, 0, 1, 1, 0, 1, 0],
}


def without_none(columns=TRIPS):
    """The table without the rows of "none", where ann's only way on trip 1 is then the one chosen."""
    keep = [i for i, mode in enumerate(columns["mode"]) if mode != "none"]
    columns = {**columns, "chosen": [1 if i == 3 else value for i, value in enumerate(columns["chosen"])]}
    return {name: [values[i] for i in keep] for name, values in columns.items()}


def offered(answers, row):
    """The prices of the options of a row, the chosen one first."""
    options = answers.observations[0].options[row]
    return answers.train_X[options[options >= 0], 0].tolist()


@pytest.mark.parametrize("make", [dict, pandas.DataFrame])
def test_choices_with_none_and_alternatives_that_differ(make):
    answers = read_choices(make(TRIPS), "trip", "chosen", ["price", "mode"], "id", alternative="mode", none="none")
    (observation,) = answers.observations
    assert isinstance(observation, ChoiceOrNone)
    assert (answers.people, answers.categories) == (("ann", "bob"), [1])
    assert answers.levels == {"mode": ("air", "bus", "car")}
    assert len(answers.train_X) == 4  # bus for 2, car for 4 and 5, air for 9
    assert (observation.judge.tolist(), observation.none.tolist()) == ([1, 0, 0, 1], [False, True, False, False])
    assert [offered(answers, row) for row in range(4)] == [[5.0, 2.0, 9.0], [5.0], [2.0, 4.0], [4.0]]
    assert (answers.judge("bob"), answers.judge("eve")) == (1, "new")


def test_points_of_another_frame_are_coded_alike():
    with pytest.warns(InputDataWarning, match="single alternative"):
        answers = read_choices(without_none(), "trip", "chosen", ["price", "mode"], "id")
    assert isinstance(answers.observations[0], Choice)
    assert len(answers.observations[0].options) == 2  # a situation with one alternative tells nothing
    assert answers.unused == (3, 6)
    named = {**without_none(), "name": [None] * 7}
    with pytest.warns(InputDataWarning, match="single alternative"):
        unnamed = read_choices(named, "trip", "chosen", ["price"], "id", alternative="name")
    assert len(unnamed.observations[0].options) == 2  # empty cells are no "none"
    points = answers.points({"mode": ["car", "air"], "price": [4, 1.5]})
    assert points.tolist() == [[4.0, 2.0], [1.5, 0.0]]
    with pytest.raises(InputDataError, match=r"'mode' must hold one of .* got 'boat' in row 1"):
        answers.points({"mode": ["car", "boat"], "price": [4, 1.5]})


def test_situations_to_come_are_left_out_of_answers():
    frame = {**TRIPS, "chosen": [0, 1, 0, 0, 1, None, None, 1, 0]}
    answers = read_choices(frame, "trip", "chosen", ["price"], "id", alternative="mode", none="none")
    assert answers.observations[0].judge.tolist() == [1, 0, 1]
    assert answers.unused == (5, 6)


def test_grades_of_named_items():
    frame = {"id": ["ann", "bob"] * 2, "item": ["q2", "q1", "q1", "q2"], "said": ["yes", "no", None, "perhaps"]}
    answers = read_grades(frame, "said", ["item"], "id", grades=["no", "perhaps", "yes"])
    (observation,) = answers.observations
    assert (observation.grades.tolist(), observation.judge.tolist()) == ([2, 0, 1], [0, 1, 1])
    assert answers.train_X[observation.index].flatten().tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(InputDataError, match=r"'said' must hold one of .* got 'perhaps' in row 3"):
        read_grades(frame, "said", ["item"], "id", grades=["no", "yes"])
    with pytest.raises(InputDataError, match="whole numbers, or give grades"):
        read_grades(frame, "said", ["item"], "id")


def test_grades_of_whole_numbers_count_from_the_lowest():
    (grades,) = read_grades({"stars": [1, 5, 3], "price": [0.1, 0.2, 0.3]}, "stars", ["price"]).observations
    assert (grades.grades.tolist(), grades.num_grades, grades.judge) == ([0, 4, 2], 5, None)


def panel_in_time():
    """Two households of three brands, interleaved; the last trip of one is to come."""
    rows = []
    for person, trip, best in [("a", 1, "x"), ("b", 1, "z"), ("a", 2, "x"), ("a", 3, "y"), ("b", 2, None)]:
        for brand in "xyz":
            rows.append((person, trip, brand, None if best is None else int(brand == best)))
    return dict(zip(("id", "trip", "brand", "chosen"), map(list, zip(*rows, strict=True)), strict=True))


def test_habits_know_earlier_choices_alone():
    found = habits(panel_in_time(), "trip", "chosen", "brand", "id", smoothing=0.8)
    loyalty, last = (torch.tensor(found[name]).view(5, 3) for name in ("loyalty", "last"))
    assert last.tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0], [1, 0, 0], [0, 0, 1]]
    third = 1 / 3
    once = torch.tensor([0.8 * third + 0.2, 0.8 * third, 0.8 * third])
    expected = torch.stack([torch.full((3,), third), torch.full((3,), third), once, 0.8 * once, once.flip(0)])
    expected[3, 0] += 0.2
    assert torch.allclose(loyalty, expected)
    assert torch.tensor(found["position"]).view(5, 3).tolist() == [[0, 1, 2]] * 5
    changed = panel_in_time()
    changed["chosen"][-6:-3] = [0, 0, 1]  # what a chooses last is not known in its own row
    assert habits(changed, "trip", "chosen", "brand", "id") == habits(panel_in_time(), "trip", "chosen", "brand", "id")


def test_a_situation_of_unknown_choice_changes_no_habit():
    """Rows after it know what they would know without it, also of several such and of another person's between."""
    brands, known = ["north", "south"], [[1, 0], [0, 1], [1, 0]]
    unknown = [None, None]
    with_gaps = [known[0], unknown, unknown, known[1], unknown, known[2]]

    def history(situations):
        num = len(situations)
        frame = {"id": ["ann", "ann", "bob", "bob"] * num, "brand": brands * 2 * num}
        frame["trip"] = [trip for trip in range(num) for _ in range(4)]
        frame["chosen"] = [cell for chosen in situations for cell in (*chosen, *known[1])]
        found = habits(frame, "trip", "chosen", "brand", "id")
        return {name: torch.tensor(found[name]).view(num, 2, 2)[:, 0] for name in ("last", "loyalty")}

    expected, found = history(known), history(with_gaps)
    assert expected["last"].tolist() == [[0, 0], [1, 0], [0, 1]]
    for name in expected:
        assert torch.equal(found[name][[0, 3, 5]], expected[name])
        assert torch.equal(found[name][[1, 2, 4]], expected[name][[1, 1, 2]])


def test_a_frame_with_habits_is_read_as_any():
    frame = panel_in_time()
    frame |= habits(pandas.DataFrame(frame), "trip", "chosen", "brand", "id")
    answers = read_choices(frame, "trip", "chosen", ["brand", "last", "loyalty"], "id")
    assert len(answers.observations[0].options) == 4
    assert answers.points(frame).shape == (15, 3)


def choices(**change):
    attributes = change.pop("attributes", ["price", "mode"])
    alternative = change.pop("alternative", "mode")
    return read_choices({**TRIPS, **change}, "trip", "chosen", attributes, "id", alternative=alternative, none="none")


def stars(grades=None, **change):
    frame = {"stars": [1, 5, 3], "price": [0.1, 0.2, 0.3], "id": ["ann", "bob", "ann"], **change}
    return read_grades(frame, "stars", ["price"], "id", grades=grades)


def chosen_twice():
    frame = panel_in_time()
    frame["chosen"][1] = 1
    return habits(frame, "trip", "chosen", "brand", "id")


PRICES = TRIPS["price"]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: choices(chosen=[1, 1, 0, 0, 1, 1, 0, 1, 0]), r"rows \[0, 1, 2\] has 2"),
        (lambda: choices(chosen=[0, 0, 0, 0, 1, 1, 0, 1, 0]), r"rows \[0, 1, 2\] has 0"),
        (lambda: choices(chosen=[0, "yes", 0, 0, 1, 1, 0, 1, 0]), "'chosen' must hold 0 or 1; got 'yes' in row 1"),
        (lambda: choices(chosen=[None, 1, 0, 0, 1, 1, 0, 1, 0]), "'chosen' is empty in row 0"),
        (lambda: choices(price=[2.0, None, *PRICES[2:]]), r"'price' is empty in rows \[1\]"),
        (lambda: choices(price=[2.0, float("inf"), *PRICES[2:]]), "finite numbers; got inf in row 1"),
        (lambda: choices(price=[10**400, *PRICES[1:]]), "finite numbers; got 1000"),
        (lambda: choices(price=[1.0]), "one length"),
        (lambda: choices(id=["bob", None, *TRIPS["id"][2:]]), r"'id' is empty in rows \[1\]"),
        (lambda: choices(attributes="price"), "attributes must be a list"),
        (lambda: choices(attributes=[]), "attributes must be a list"),
        (lambda: choices(attributes=["cost"]), "no column 'cost'"),
        (lambda: choices(alternative=None), "give the name of the column of alternatives"),
        (lambda: stars(stars=[3, 3, 3]), "'stars' has grades from 3 to 3; give grades"),
        (lambda: stars(stars=[1, 10**9, 3]), "'stars' has grades from 1 to 1000000000; give grades"),
        (lambda: stars(stars=[1, float("inf"), 3]), "whole numbers, or give grades, .* got inf in row 1"),
        (lambda: stars([1, 1, 3, 5]), "different grades, two or more"),
        (lambda: stars("135"), "different grades, two or more"),
        (lambda: stars(5), "different grades, two or more"),
        (lambda: stars(price=[0.1]), "Columns 'stars' and 'price' must have one length; got 3 and 1"),
        (lambda: stars(id=["ann"]), "Columns 'stars' and 'id' must have one length; got 3 and 1"),
        (lambda: choices(id=["bob", "bob", "bobb", *TRIPS["id"][3:]]), r"rows \[2\] has 0 in column 'chosen'"),
        (lambda: choices(price=["2", "free", *PRICES[2:]]), r"'price' holds numbers beside 'free' in rows \[1\]"),
        (lambda: choices(chosen=[*["car"] * 8, "none"]), "give alternatives="),
        (chosen_twice, r"rows \[0, 1, 2\] has several"),
    ],
)
def test_errors_name_columns_and_rows(call, match):
    with pytest.raises(InputDataError, match=match):
        call()


@pytest.mark.parametrize("convert", [str, Decimal, float])
def test_numbers_as_text_or_decimals_are_numbers(convert):
    def written(values):
        return [None if value is None else convert(str(value)) for value in values]

    frame = {**TRIPS, "price": written(PRICES), "chosen": written(TRIPS["chosen"])}
    answers = read_choices(frame, "trip", "chosen", ["price", "mode"], "id", alternative="mode", none="none")
    plain = read_choices(TRIPS, "trip", "chosen", ["price", "mode"], "id", alternative="mode", none="none")
    assert torch.equal(answers.train_X, plain.train_X)
    assert answers.levels == plain.levels
    assert torch.equal(answers.observations[0].options, plain.observations[0].options)
    graded = read_grades({"stars": [convert("1"), convert("3")], "price": [1, 2]}, "stars", ["price"])
    assert graded.observations[0].grades.tolist() == [0, 2]


def test_a_categorical_holds_names_in_its_order():
    sizes = ["small", "large", "middle", "small"]
    size = pandas.Categorical(sizes, ["small", "middle", "large", "huge"], ordered=True)
    code = pandas.Categorical(["1", "10", "2", "1"])
    frame = pandas.DataFrame({"trip": [1, 1, 2, 2], "size": size, "code": code, "chosen": [1, 0, 0, 1]})
    answers = read_choices(frame, "trip", "chosen", ["size", "code"])
    assert answers.levels == {"size": ("small", "middle", "large"), "code": ("1", "10", "2")}
    assert answers.points({"size": ["large"], "code": ["10"]}).tolist() == [[2.0, 1.0]]
    graded = read_grades(frame, "size", ["code"]).observations[0]  # whose grades have an order
    assert (graded.grades.tolist(), graded.num_grades) == ([0, 2, 1, 0], 4)


def test_a_wide_table_is_the_long_one():
    """A row for each trip of `TRIPS`, whose alternatives of empty attributes were not available."""
    wide = {
        "who": ["bob", "ann", "ann", "bob", "bob"],
        "took": ["car", "none", "bus", "car", None],
        "price.bus": [2.0, None, 2.0, None, 1.0],
        "price_car": [5.0, 5.0, 4.0, 4.0, 1.0],
        "price:air": [9.0, None, None, None, 1.0],
    }
    ways = ["bus", "car", "air"]
    answers = read_choices(wide, None, "took", ["price", "mode"], "who", "mode", "none", alternatives=ways)
    long = read_choices(TRIPS, "trip", "chosen", ["price", "mode"], "id", alternative="mode", none="none")
    assert (answers.people, answers.levels, answers.unused) == (long.people, long.levels, (4,))
    seen, expected = answers.observations[0], long.observations[0]
    assert (seen.judge.tolist(), seen.none.tolist()) == (expected.judge.tolist(), expected.none.tolist())
    assert [offered(answers, row) for row in range(4)] == [offered(long, row) for row in range(4)]
    with pytest.raises(InputDataError, match=r"'took' must hold one of .* got 'train' in row 0"):
        read_choices({**wide, "took": ["train"] * 5}, None, "took", ["price"], "who", alternatives=ways)
    with pytest.raises(InputDataError, match=r"no column 'price\.train' or 'price'"):
        read_choices(wide, None, "took", ["price"], "who", none="none", alternatives=[*ways, "train"])
    unknown = {**wide, "price_car": [None, *wide["price_car"][1:]]}  # of the one that was chosen
    with pytest.raises(InputDataError, match=r"'price' is empty in rows \[0\]"):
        read_choices(unknown, None, "took", ["price"], "who", none="none", alternatives=ways)


def test_rankings_in_wide_and_long_format():
    wide = {"by": ["ann", "bob", "eve"], "a": [1, "2", None], "b": [2, 2, None], "c": [2, None, 1], "d": [3, 1, None]}
    answers = read_rankings(wide, items=["d", "c", "b", "a"], person="by")
    assert (answers.items, answers.people, answers.unused) == (("d", "c", "b", "a"), ("ann", "bob"), (2,))
    (ranking,) = answers.observations
    assert ranking.items.tolist() == [[3, 1, 2, 0], [0, 2, 3, -1]]
    assert ranking.ranks.tolist() == [[0, 1, 1, 2], [0, 1, 1, -1]]
    assert ranking.judge.tolist() == [0, 1]
    cells = [(wide["by"][i], item, wide[item][i]) for item in "abcd" for i in range(3)]
    long = dict(zip(("by", "wine", "place"), map(list, zip(*cells, strict=True)), strict=True))
    found = read_rankings(long, "place", "wine", person="by")
    assert (found.items, found.attributes, found.categories) == (("a", "b", "c", "d"), ("wine",), [0])
    assert found.observations[0].items.tolist() == [[0, 1, 2, 3], [3, 0, 1, -1]]
    assert found.unused == (2, 5, 7, 8, 11)
    with pytest.raises(InputDataError, match=r"names 'a' twice, in rows \[0, 1\]"):
        read_rankings({"by": ["x", "x"], "wine": ["a", "a"], "place": [1, 2]}, "place", "wine", person="by")


def test_duels_with_ties_are_rankings_of_two():
    frame = {"taste": [1, 1, 2, 2], "sugar": ["0.1", "0.5", "0.5", "0.9"], "place": [2, 1, 1, 1]}
    duels = read_rankings(frame, "place", ranking="taste", attributes=["sugar"])
    won, tied = duels.observations
    assert (type(won), type(tied)) == (Preference, Tie)
    assert duels.train_X[won.pairs].flatten().tolist() == [0.5, 0.1]
    assert duels.train_X[tied.pairs].flatten().tolist() == [0.5, 0.9]
    assert duels.items is None


def test_event_times_are_logarithms_in_intervals():
    frame = {"from": [2.0, 5.0, 0.0, 3.0, None, None], "to": ["3", None, "4", "3", None, 7], "dose": [1, 2, 3, 4, 5, 1]}
    answers = read_event_times(frame, "from", "to", ["dose"])
    exact, between = answers.observations
    assert exact.values.exp().tolist() == pytest.approx([3.0])
    assert between.lower.exp().tolist() == pytest.approx([2.0, 5.0, 0.0, 0.0])
    assert between.upper.exp().tolist() == pytest.approx([3.0, torch.inf, 4.0, 7.0])
    assert answers.train_X[between.index].flatten().tolist() == [1.0, 2.0, 3.0, 1.0]
    assert answers.unused == (4,)
    with pytest.raises(InputDataError, match=r"'from' is after column 'to' in rows \[1\]"):
        read_event_times({"from": [1, 3], "to": [2, 2], "dose": [0, 0]}, "from", "to", ["dose"])
    with pytest.raises(InputDataError, match=r"not negative; see rows \[0\]"):
        read_event_times({"from": [-1], "to": [2], "dose": [0]}, "from", "to", ["dose"])


def test_a_none_that_a_csv_file_lost_is_named():
    written = "task,option,price,chosen\n1,x,1,1\n1,None,,0\n2,x,2,0\n2,None,,1\n"
    columns = "task", "chosen", ["price"], None, "option", "None"
    with pytest.raises(InputDataError, match=r"'option' is empty in rows \[1, 3\].*keep_default_na=False"):
        read_choices(pandas.read_csv(StringIO(written)), *columns)
    as_told = pandas.read_csv(StringIO(written), keep_default_na=False, na_values=[""])
    assert read_choices(as_told, *columns).observations[0].none.tolist() == [False, True]
