"""A scripted judge tunes a picture on optuna-dashboard's page, in a real browser."""

import io
import re
import runpy
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
import optuna
from matplotlib.image import imread
from optuna_dashboard.preferential import load_study
from playwright.sync_api import Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium")
TUTORIAL = Path(__file__).parents[2] / "tutorials" / "optuna" / "tune_a_picture.py"
LIKED = {"exposure": 2.2, "warmth": -0.2, "haze": 0.1}
NUM_JUDGEMENTS = 10
WAIT = 120_000  # milliseconds, at most

pytestmark = pytest.mark.slow


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """The running tutorial: the address of the page."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    arguments = [sys.executable, str(TUTORIAL), str(folder), str(port)]
    with (folder / "log").open("w") as log, subprocess.Popen(arguments, stdout=-1, stderr=log, text=True) as process:
        try:
            assert process.stdout.readline().startswith("judge on"), (folder / "log").read_text()[-2000:]
            yield f"http://localhost:{port}/dashboard/studies/1"
        finally:
            process.kill()


def test_a_picture_is_tuned_further_after_a_restart(tmp_path):
    for _ in range(2):
        with running(tmp_path) as address:
            assert address


def dislike(image: np.ndarray) -> float:
    """How far a picture, as the page shows it in eight bits, is from the one that the judge has in mind."""
    return float(np.square(image[..., :3] - runpy.run_path(str(TUTORIAL))["picture"](**LIKED)).mean())


def judge(page: Page) -> None:
    """Look at both pictures, and press the button below the worse one."""
    cards = page.locator("div:has(> [aria-label='trial-button'])")
    expect(cards.locator("img")).to_have_count(2, timeout=WAIT)
    # names and pictures in one look: the page may draw its cards anew between two
    heading = "card.querySelector('h1, h2, h3, h4, h5, h6').innerText"
    look = f"cards => cards.map(card => [{heading}, card.querySelector('img').src])"
    seen = []
    for name, source in cards.evaluate_all(look):
        answer = page.request.get(source)
        seen.append((dislike(imread(io.BytesIO(answer.body()))), re.match(r"Trial \d+", name)[0]))
    _, worse = max(seen)
    cards.filter(has=page.get_by_role("heading", name=re.compile(rf"^{worse}\b"))).get_by_role("button").last.click()
    expect(page.get_by_role("heading", name=re.compile(rf"^{worse}\b"))).to_have_count(0, timeout=WAIT)


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
def test_ten_judgements_on_the_page_make_the_picture_better(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(TUTORIAL), str(tmp_path)])
    with running(tmp_path) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(address)
        for _ in range(NUM_JUDGEMENTS):
            judge(page)
        browser.close()
    sampler = optuna.samplers.RandomSampler()
    study = load_study(study_name="hills", storage=f"sqlite:///{tmp_path}/study.db", sampler=sampler)
    assert len(study.preferences) == NUM_JUDGEMENTS
    seen = study.trials[: NUM_JUDGEMENTS + 1]  # the one after the last judgement may still be sampled
    chosen = [any(key.startswith("skewgp:relative") for key in trial.system_attrs) for trial in seen]
    assert chosen == [False, False] + [True] * (len(chosen) - 2)  # the first two before any judgement
    dislikes = [
        dislike(imread(tmp_path / trial.user_attrs["picture"])) for trial in seen if "picture" in trial.user_attrs
    ]
    assert len(dislikes) > NUM_JUDGEMENTS - 1
    assert min(dislikes[2:]) < 0.5 * min(dislikes[:2])
    judged = {trial.number for pair in study.preferences for trial in pair}
    best = {trial.number for trial in study.best_trials}
    assert min(judged, key=lambda number: dislikes[number]) in best
