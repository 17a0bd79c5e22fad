"""The tests of both hosts are left out where one is not installed."""

from importlib.util import find_spec

IN_BOTH = ["test_any_entries.py", "test_programs.py", "test_truths.py"]
collect_ignore = [] if find_spec("ax") and find_spec("optuna") else IN_BOTH
