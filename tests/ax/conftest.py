"""The tests of Ax are left out where Ax is not installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("ax") else ["test_*.py"]
