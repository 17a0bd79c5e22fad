"""A PostgreSQL server of a test's own, in a temporary folder, on a socket."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def binaries() -> Path | None:
    """The folder of the newest server's programs; Debian keeps it off the path. `None` without one."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    program = shutil.which("initdb")
    return None if program is None else Path(program).resolve().parent


class Server:
    """A running server, which can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"postgresql+psycopg://skewgp@/postgres?host={folder}"

    def control(self, *arguments: str) -> None:
        """Call one of the server's programs, as another user if the test runs as root, which the server refuses."""
        folder = binaries()
        assert folder is not None
        command = [str(folder / arguments[0]), *arguments[1:], "-D", str(self.folder / "data")]
        if os.geteuid() == 0:
            command = ["runuser", "-u", owner(), "--", *command]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off"
        self.control("pg_ctl", "start", "-w", "-o", options, "-l", str(self.folder / "log"))

    def stop(self) -> None:
        """At once, as a machine that loses its power."""
        self.control("pg_ctl", "stop", "-m", "immediate")


def owner() -> str:
    """A user who is not root."""
    return "postgres" if any(entry.pw_name == "postgres" for entry in pwd.getpwall()) else "nobody"


@contextmanager
def server() -> Iterator[Server]:
    """A server that is gone afterwards. Sockets have short names, and root's temporary folders are closed to others."""
    with tempfile.TemporaryDirectory(prefix="skewgp", ignore_cleanup_errors=True) as name:
        if os.geteuid() == 0:
            shutil.chown(name, owner())
        one = Server(Path(name))
        one.control("initdb", "-A", "trust", "-U", "skewgp", "--no-sync")
        one.start()
        try:
            yield one
        finally:
            one.stop()
