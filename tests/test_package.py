"""The package as it is installed: what it offers, with types for those who check theirs."""

import ast
import importlib
import re
from pathlib import Path

import understudy

SOURCE = Path(understudy.__file__)


def type_block():
    """The imports that only a type checker sees."""
    for node in ast.parse(SOURCE.read_text()).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return node.body
    raise AssertionError("no type block")


def test_the_type_block_lists_all_that_the_package_offers():
    listed = {alias.asname for node in type_block() for alias in node.names}
    assert listed == set(dir(understudy)) - {"__version__"}


def test_all_that_the_package_offers_exists_and_lives_where_the_type_block_says():
    for node in type_block():
        for alias in node.names:
            try:
                offered = getattr(understudy, alias.name)
            except ModuleNotFoundError as error:  # a room of an optional package that is not installed
                if str(error.name).startswith("understudy"):
                    raise
                continue
            home = importlib.import_module(node.module)
            assert getattr(home, alias.name) is offered


def test_types_are_shipped():
    assert (SOURCE.parent / "py.typed").exists()


def test_the_version_is_that_of_the_last_release_in_changelog_and_citation():
    """The version stands in one place; the files that tell of a release follow it."""
    root = Path(__file__).parent.parent
    version, date = re.search(r"^## (\d\S+) - (\S+)$", (root / "CHANGELOG.md").read_text(), re.M).groups()
    citation = (root / "CITATION.cff").read_text()
    assert version == understudy.__version__
    assert f"version: {version}\n" in citation
    assert f'date-released: "{date}"\n' in citation
    assert f"## {version} ({date})\n" in (root / "docs" / "release-notes.md").read_text()
