"""Results are keyed by code: what a claim computes with changes the key, what only shows it does not."""

import ast

import pytest

from understudy.papers import provenance
from understudy.papers.registry import PAPERS, claims_of


@pytest.fixture
def package(monkeypatch, tmp_path):
    """A package of three modules: `claim` uses `engine` inside a function, `other` is used by nobody."""
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    (tmp_path / "claim.py").write_text("def measure():\n    from understudy.engine import f\n    return f()\n")
    (tmp_path / "engine.py").write_text("def f():\n    '''One.'''\n    return 1  # one\n")
    (tmp_path / "other.py").write_text("x = 1\n")

    def measure():
        """Stands for the function of the module `claim`."""

    measure.__module__ = "understudy.claim"

    def key():
        for function in (provenance.modules, *vars(provenance).values()):
            if hasattr(function, "cache_clear"):
                function.cache_clear()
        return provenance.code_key(measure)

    yield tmp_path, key
    key()


@pytest.mark.parametrize(
    ("file", "source", "same"),
    [
        ("engine.py", "def f():\n    return 2\n", False),
        ("claim.py", "def measure():\n    from understudy.engine import f\n    return 2 * f()\n", False),
        ("engine.py", "# A comment.\ndef f():\n    '''Another sentence.'''\n    return 1\n", True),
        ("other.py", "x = 2\n", True),
    ],
)
def test_the_key_follows_the_code_that_computes(package, file, source, same):
    folder, key = package
    before = key()
    (folder / file).write_text(source)
    assert (key() == before) is same


def test_what_is_taken_from_the_package_counts():
    found = provenance.modules("understudy.papers.copy_average.span")
    assert "understudy.gaussian.closed" in found  # through `us.Population`
    assert not any(name.startswith(("understudy.plots", "understudy.papers.report")) for name in found)


def test_every_claim_is_measured_by_a_module_with_source():
    for handle in PAPERS:
        for claim in claims_of(handle):
            path = provenance._file(claim.measure.__module__)
            assert path is not None, claim.id
            assert ast.parse(path.read_text())
