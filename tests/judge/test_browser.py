"""People judge pictures in a real browser: thirty rounds of the best of four or none, on two days, beside another."""

import io
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("playwright", reason="the page is judged on through playwright")
pytest.importorskip("matplotlib", reason="draws the pictures")
from matplotlib.image import imread, imsave
from playwright.sync_api import Browser, Page, expect, sync_playwright

from botorch_skewgp.items import leaderboard
from botorch_skewgp.judge import FolderItems, read_rounds

CHROMIUM = shutil.which("chromium")
LEVELS = np.linspace(0, 1, 20)
LIKED, TOO_FAR = 0.6, 0.3  # the level of grey that is best, and how far from it all is bad
WAIT = 120_000  # milliseconds, at most

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")]


@pytest.fixture
def pictures(tmp_path):
    """Pictures of one grey each."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number, level in enumerate(LEVELS):
        imsave(folder / f"{number:02d}.png", np.full((30, 40, 3), level))
    return folder


@contextmanager
def running(folder: Path, port: int) -> Iterator[str]:
    """The running page: its address."""
    arguments = [sys.executable, "-m", "botorch_skewgp.judge", str(folder), "--port", str(port)]
    with (folder / "log").open("w") as log, subprocess.Popen(arguments, stdout=-1, stderr=log, text=True) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("judge on http://127.0.0.1:"), (folder / "log").read_text()[-2000:]
            yield line.removeprefix("judge on ").strip()
        finally:
            process.kill()


def visitor(browser: Browser, address: str, name: str, state=None) -> Page:
    """The page of a judge, who gives a name on the first day; names are kept in the browser."""
    page = browser.new_context(storage_state=state).new_page()
    page.goto(address)
    if state is None:
        page.get_by_label("Your name").fill(name)
        page.get_by_role("button", name="Start").click()
    return page


def at(page: Page, name: str, answered: int) -> None:
    """Wait until the next round is there."""
    expect(page.locator("#answered")).to_have_text(f"{name}: {answered} answered.", timeout=WAIT)
    expect(page.locator("#judging")).to_have_attribute("aria-busy", "false", timeout=WAIT)


def distances(page: Page) -> list[float]:
    """How far each of the pictures is from the one that the judges have in mind; all are read in one look."""
    sources = page.locator("#shown img").evaluate_all("images => images.map(image => image.src)")
    assert len(sources) == 4
    return [
        abs(float(imread(io.BytesIO(page.request.get(source).body()))[..., :3].mean()) - LIKED) for source in sources
    ]


def judge(page: Page, by_keys: bool) -> None:
    """Choose the best of the pictures, or none."""
    found = distances(page)
    best = found.index(min(found)) if min(found) < TOO_FAR else None
    if by_keys:
        page.keyboard.press("0" if best is None else str(best + 1))
    elif best is None:
        page.get_by_role("button", name="All are bad").click()
    else:
        page.get_by_role("button", name=f"Best: {best + 1}").click()


def test_two_people_judge_on_two_days(pictures):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with running(pictures, port) as address:
            ann, bob = (visitor(browser, address, name) for name in ("ann", "bob"))
            for number in range(15):
                at(ann, "ann", number)
                judge(ann, by_keys=number % 2 == 0)
                if number < 3:
                    at(bob, "bob", number)
                    judge(bob, by_keys=True)
            at(ann, "ann", 15)
            before = read_rounds(pictures / "answers.json")
            ann.keyboard.press("1")  # a mistake
            at(ann, "ann", 16)
            ann.get_by_role("button", name="Undo").click()
            at(ann, "ann", 15)
            assert [entry for entry in read_rounds(pictures / "answers.json") if entry.is_answered] == [
                entry for entry in before if entry.is_answered
            ]
            assert ann.locator("#message").inner_text() == ""
            waiting = distances(ann)
            state = ann.context.storage_state()
            ann.close()
        with running(pictures, port) as address:  # the next day
            ann = visitor(browser, address, "ann", state)
            for number in range(15, 30):
                at(ann, "ann", number)
                assert number > 15 or distances(ann) == waiting
                judge(ann, by_keys=True)
            at(ann, "ann", 30)
        browser.close()
    rounds = read_rounds(pictures / "answers.json")
    assert [sum(entry.judge == name and entry.is_answered for entry in rounds) for name in ("ann", "bob")] == [30, 3]
    answers = [entry.judgement for entry in rounds if entry.is_answered]
    items = FolderItems(pictures)
    best = leaderboard(items.model(answers), items.names).index[0]
    assert abs(LEVELS[int(best[:2])] - LIKED) < 0.08
