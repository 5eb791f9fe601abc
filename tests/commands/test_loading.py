"""A terminal shows that a large library is being loaded, and nothing of it after; elsewhere a line says so if it takes long."""

import importlib.util
import io
import sys

import pytest

from understudy.commands import loading


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A library that notes what the terminal showed while it was loaded."""
    (tmp_path / "a_large_library.py").write_text("import sys\nSHOWN = sys.stderr.getvalue()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(loading, "LARGE", {"a_large_library": "Large"})
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "a_large_library", raising=False)
    yield "a_large_library"
    sys.modules.pop("a_large_library", None)


@pytest.mark.parametrize(
    ("screen", "term", "shown"), [(Terminal, "xterm", True), (Terminal, "dumb", False), (io.StringIO, "xterm", False)]
)
def test_quick_loading_is_announced_on_terminals_alone(large, monkeypatch, screen, term, shown):
    monkeypatch.setattr(sys, "stderr", screen())
    monkeypatch.setenv("TERM", term)
    loading.announce_loading()
    assert importlib.util.find_spec(large) is not None, "a question alone shows nothing"
    assert sys.stderr.getvalue() == ""
    seen = importlib.import_module(large).SHOWN
    assert seen == ("loading Large …" if shown else "")
    assert sys.stderr.getvalue() == ("loading Large …\r\x1b[K" if shown else "")
    assert not any(isinstance(finder, loading.Announcer) for finder in sys.meta_path)


def test_slow_loading_is_announced_without_a_terminal(large, tmp_path, monkeypatch):
    wait = "while not sys.stderr.getvalue(): time.sleep(0.001)"
    (tmp_path / "a_large_library.py").write_text(f"import sys, time\n{wait}\nSHOWN = sys.stderr.getvalue()\n")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(loading, "PATIENCE", 0.01)
    loading.announce_loading()
    importlib.import_module(large)
    assert sys.stderr.getvalue() == "loading Large …\n"
