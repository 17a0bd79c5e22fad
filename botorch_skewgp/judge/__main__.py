"""`python -m botorch_skewgp.judge FOLDER`: people choose the best of the files in a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from botorch_skewgp.items import leaderboard
from botorch_skewgp.judge.page import HOST, PORT, serve
from botorch_skewgp.judge.rounds import read_rounds
from botorch_skewgp.judge.sources import FolderItems


def main(arguments: list[str] | None = None) -> None:
    """Serve the page, or print what was answered."""
    parser = argparse.ArgumentParser(
        prog="python -m botorch_skewgp.judge",
        description="A page on which people choose the best of several pictures, sounds, videos or texts.",
    )
    parser.add_argument("folder", type=Path, help="the folder of the files")
    parser.add_argument("--answers", type=Path, help="the file of answers; by default answers.json in the folder")
    parser.add_argument("--num-shown", type=int, default=4, help="how many are shown together, 2 to 9 (%(default)s)")
    parser.add_argument("--host", default=HOST, help="the address to listen on (%(default)s: this machine alone)")
    parser.add_argument("--port", type=int, default=PORT, help="%(default)s; 0 for a free one")
    parser.add_argument("--results", action="store_true", help="print the files from the best to the worst, and end")
    given = parser.parse_args(arguments)
    items, path = FolderItems(given.folder), given.answers or given.folder / "answers.json"
    if not given.results:
        serve(items, path, given.num_shown, given.host, given.port)
        return
    answers = [entry.judgement for entry in read_rounds(path) if entry.is_answered]
    columns = ["mean", "lower", "upper", "rank", "p_best", "votes"]
    print(leaderboard(items.model(answers), items.names)[columns].round(2).to_string())


if __name__ == "__main__":
    main()
