"""Compiled functions, and what is said when they are compiled."""

import logging
from types import SimpleNamespace

import pytest

pytest.importorskip("numba")
from numba import njit
from numba.core import event
from numba.core.caching import CacheImpl

from botorch_skewgp.truncated import compilation
from botorch_skewgp.truncated.compilation import _Herald


def compile_event(module):
    function = SimpleNamespace(__module__=module)
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})


def test_is_told_once_and_of_this_package_only(caplog):
    herald = _Herald()
    herald.on_start(compile_event("another.module"))
    assert not caplog.records
    herald.on_start(compile_event("botorch_skewgp.truncated.diagnostics.compiled_chains"))
    herald.on_start(compile_event("botorch_skewgp.truncated.diagnostics.compiled_scores"))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "Compiling" in record.message
    assert "NUMBA_CACHE_DIR" not in record.message


def test_functions_that_cannot_be_kept_are_compiled_all_the_same(monkeypatch, caplog):
    herald = _Herald()
    monkeypatch.setattr(compilation, "herald", herald)
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])  # no folder can be written to
    assert compilation.compiled()(lambda x: x + 1.0)(1.0) == 2.0
    herald.on_start(compile_event("botorch_skewgp.truncated.diagnostics.compiled_chains"))
    assert "NUMBA_CACHE_DIR" in caplog.text


def test_other_errors_are_not_caught(monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("of another kind")

    monkeypatch.setattr(compilation, "njit", fail)
    with pytest.raises(RuntimeError, match="of another kind"):
        compilation.compiled()(lambda x: x)


def test_numba_tells_of_what_it_compiles():
    with event.install_recorder("numba:compile") as recorder:
        assert njit(lambda x: x + 1.0)(1.0) == 2.0
    names = {entry.data["dispatcher"].py_func.__module__ for _, entry in recorder.buffer if entry.is_start}
    assert __name__ in names
