"""What the page answers to requests, without a browser."""

import io
import json
from wsgiref.util import setup_testing_defaults

import pytest
from botorch.exceptions.errors import InputDataError

from botorch_skewgp.judge import FolderItems, Rounds, make_page
from botorch_skewgp.judge.page import OWN_NAMES, content


class Client:
    """Requests to a page."""

    def __init__(self, rounds):
        self.rounds, self.app = rounds, make_page(rounds, OWN_NAMES)

    def __call__(self, method, path, body=None, **headers):
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "HTTP_HOST": "localhost:8000"}
        environ |= {"wsgi.input": io.BytesIO(text), "CONTENT_LENGTH": str(len(text))}
        environ |= {"CONTENT_TYPE": "application/json", "wsgi.errors": io.StringIO()} | headers
        setup_testing_defaults(environ)
        found = {}

        def start(status, headers, *args):
            found.update(status=int(status[:3]), headers=dict(headers))

        found["body"] = b"".join(self.app(environ, start))
        return found["status"], found["headers"], found["body"]

    def post(self, path, **body):
        status, _, answer = self("POST", path, body)
        return json.loads(answer) if status == 200 else (status, answer.decode())


@pytest.fixture
def client(folder, tmp_path):
    return Client(Rounds(FolderItems(folder), tmp_path / "answers.json"))


def test_a_judge_answers_takes_back_and_goes_on(client):
    asked = client.post("/round", judge="ann")
    shown = client.rounds.all[0].shown
    assert asked["round"] == asked["answered"] == 0
    assert [entry["text"] for entry in asked["shown"]] == [f"<b>{name[0]}</b>" for name in shown]
    assert [entry["kind"] for entry in asked["shown"]] == ["text"] * 4
    again = client.post("/answer", judge="ann", round=0, best=2)
    assert (again["round"], again["answered"], again["message"]) == (1, 1, "")
    assert client.rounds.all[0].best == 2
    late = client.post("/answer", judge="ann", round=0, best=1)
    assert (late["round"], late["answered"]) == (1, 1)
    assert "not open any more" in late["message"]
    back = client.post("/undo", judge="ann")
    assert (back["round"], back["answered"], back["shown"]) == (0, 0, asked["shown"])
    assert client.post("/answer", judge="ann", round=0, best=None)["round"] == 1
    assert (client.rounds.all[0].is_answered, client.rounds.all[0].best) == (True, None)


def test_what_is_shown_is_looked_up_by_numbers(client):
    client.post("/round", judge="ann")
    status, headers, body = client("GET", "/show/0/3")
    assert (status, headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert body.decode() == f"<b>{client.rounds.all[0].shown[3][0]}</b>"
    assert headers["Content-Security-Policy"] == "sandbox"
    for path in ("/show/0/4", "/show/1/0", "/show/-1/0", "/show/0/-1", "/show/0/..", "/show/0/1.txt"):
        assert client("GET", path)[0] == 404
    for path in ("/show/0/../../answers.json", "/answers.json", "/../answers.json", "/show/0/0/../x"):
        assert client("GET", path)[0] == 404


def test_the_page_itself(client):
    status, headers, body = client("GET", "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"Which is the best?" in body
    assert b"http" not in body, "nothing comes from elsewhere"


@pytest.mark.parametrize("host", ["evil.example:8000", "evil.example", "localhost.evil.example:8000", ""])
def test_names_of_other_hosts_are_refused(client, host):
    """A site may make a name of its own point to this machine."""
    for method, path in (("GET", "/"), ("POST", "/round")):
        assert client(method, path, {"judge": "ann"}, HTTP_HOST=host)[0] == 403
    assert client.rounds.all == []


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_forms_of_other_sites_are_refused(client, kind):
    """Browsers send these without asking; JSON to another site they do not."""
    client.post("/round", judge="ann")
    assert client("POST", "/answer", {"judge": "ann", "round": 0, "best": 0}, CONTENT_TYPE=kind)[0] == 415
    assert client.rounds.num_answered("ann") == 0


@pytest.mark.parametrize("body", [b"", b"[]", b"3", b"{", b'{"judge": 3}', b'{"judge": ""}', b'{"judge": null}'])
def test_requests_that_name_no_judge(client, body):
    for path in ("/round", "/answer", "/undo"):
        assert client("POST", path, body)[0] == 400
    assert client.rounds.all == []


def test_contents(tmp_path):
    """By the name of a file, or the first bytes of its content."""
    (tmp_path / "a.png").write_bytes(b"abc")
    assert content(tmp_path / "a.png") == ("image/png", b"abc")
    (tmp_path / "a.html").write_bytes(b"<script>")
    assert content(tmp_path / "a.html") == ("text/plain; charset=utf-8", b"<script>")
    assert content("grün") == ("text/plain; charset=utf-8", "grün".encode())
    wave = b"RIFF\x24\x00\x00\x00WAVEfmt "
    assert content(wave) == ("audio/wav", wave)
    assert content(b"\x89PNG\r\n")[0] == "image/png"
    for wrong in (b"nothing", 3, None, tmp_path / "missing.png", tmp_path / "b.json"):
        with pytest.raises(InputDataError, match="What is shown must be"):
            content(wrong)
