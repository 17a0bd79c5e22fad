"""The page in a browser, and what it asks for.

A request names a round and a place by numbers, which are looked up; no part of it becomes a path. Other sites cannot
answer: they can neither send JSON here nor, where the page is on this machine alone, reach it by a name of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from botorch.exceptions.errors import InputDataError
from bottle import Bottle, HTTPResponse, abort, request

from botorch_skewgp.judge.rounds import Rounds, Shown, Source
from botorch_skewgp.judge.sources import media_type_of

HOST, PORT = "127.0.0.1", 8000
OWN_NAMES = ("127.0.0.1", "localhost")
TEXT = "text/plain; charset=utf-8"
SIGNATURES = {  # of the first bytes of a file
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"<svg": "image/svg+xml",
    b"<?xml": "image/svg+xml",
    b"ID3": "audio/mpeg",
    b"\xff\xfb": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
}
CHUNKS = {b"WAVE": "audio/wav", b"WEBP": "image/webp"}  # of RIFF files


def make_page(rounds: Rounds, only_for: tuple[str, ...] = ()) -> Bottle:
    r"""The page as a WSGI application.

    Args:
        rounds: The rounds.
        only_for: The names of the host by which requests may come; all if empty.
    """
    app = Bottle()

    @app.hook("before_request")
    def refuse_others() -> None:
        if only_for and request.get_header("Host", "").rpartition(":")[0] not in only_for:
            abort(403, "This page is for this machine alone.")
        if request.method == "POST" and request.content_type.partition(";")[0] != "application/json":
            abort(415, "Send JSON.")

    def next_round(judge: Any, message: str = "") -> dict[str, Any]:
        number = rounds.open(judge)
        shown = []
        for place, item in enumerate(rounds.all[number].shown):
            media, data = content(rounds.source.show(item))
            kind = media.partition("/")[0]
            shown.append({"kind": kind, "text": data.decode(errors="replace")} if kind == "text" else {"kind": kind})
            shown[-1]["source"] = f"/show/{number}/{place}"
        return {"round": number, "shown": shown, "answered": rounds.num_answered(judge), "message": message}

    def step(change: Callable[[Any, dict[str, Any]], None]) -> Any:
        """Change the rounds as a judge says, and show the next one."""
        asked = request.json if isinstance(request.json, dict) else {}
        judge, message = asked.get("judge"), ""
        try:
            change(judge, asked)
        except InputDataError as error:
            message = str(error)
        try:
            return next_round(judge, message)
        except InputDataError as error:
            return HTTPResponse(str(error), 400, content_type=TEXT)

    @app.get("/")
    def page() -> HTTPResponse:
        text = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
        return HTTPResponse(text, content_type="text/html; charset=utf-8", cache_control="no-store")

    @app.post("/round")
    def ask() -> Any:
        return step(lambda judge, asked: None)

    @app.post("/answer")
    def answer() -> Any:
        return step(lambda judge, asked: rounds.answer(judge, asked.get("round"), asked.get("best")))

    @app.post("/undo")
    def undo() -> Any:
        return step(lambda judge, asked: rounds.undo(judge))

    @app.get("/show/<number:int>/<place:int>")
    def show(number: int, place: int) -> HTTPResponse:
        if not (0 <= number < len(rounds.all) and 0 <= place < len(rounds.all[number].shown)):
            return HTTPResponse("There is no such round.", 404)
        media, data = content(rounds.source.show(rounds.all[number].shown[place]))
        answer = HTTPResponse(data, content_type=media, cache_control="no-store")
        answer.set_header("Content-Security-Policy", "sandbox")  # a drawing may have a script
        answer.set_header("X-Content-Type-Options", "nosniff")
        return answer

    return app


def content(shown: Shown) -> tuple[str, bytes]:
    """The media type and the bytes of what is shown.

    Raises:
        InputDataError: If it is nothing that a page can show.
    """
    if isinstance(shown, str):
        return TEXT, shown.encode()
    if isinstance(shown, Path):
        media = media_type_of(shown)
        if media is not None and shown.is_file():
            return TEXT if media.startswith("text") else media, shown.read_bytes()
    if isinstance(shown, bytes):
        start = next((media for first, media in SIGNATURES.items() if shown.startswith(first)), None)
        media = CHUNKS.get(shown[8:12]) if shown.startswith(b"RIFF") else start
        if media is not None:
            return media, shown
    raise InputDataError(
        "What is shown must be the path of a file with a picture, a sound, a video or a text, a text, or the content "
        f"of such a file; got {repr(shown)[:80]}."
    )


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Nothing."""


def serve(source: Source, path: str | os.PathLike[str], num_shown: int = 4, host: str = HOST, port: int = PORT) -> None:
    r"""Serve the page until the process is stopped; its address is written to the standard output.

    Whoever can reach the address can judge: there are no accounts. The default is this machine alone.

    Example::

        serve(FolderItems("pictures"), "pictures/answers.json")

    Args:
        source: What is judged: `FolderItems`, `Designs`, or the trials of a study or an experiment.
        path: The file of answers, from which the page goes on if it exists.
        num_shown: The number of items in a round, 2 to 9.
        host: The address to listen on; `"0.0.0.0"` for the network.
        port: The port; 0 for a free one.

    Raises:
        InputDataError: If the file is not one of answers, or the number is out of its range.
    """
    rounds = Rounds(source, path, num_shown)
    app = make_page(rounds, OWN_NAMES if host in OWN_NAMES else ())
    with make_server(host, port, app, _Server, _Handler) as server:
        sys.stdout.write(f"judge on http://{host}:{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()
