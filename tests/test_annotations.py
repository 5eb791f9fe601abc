"""Annotations of arrays are checked: those of functions and fields alike, in every class that carries arrays."""

import ast
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import pytest
from jaxtyping import Array, Float

from understudy.networks import TwoLayer
from understudy.tasks import Empirical

SOURCE = Path(__file__).parent.parent / "src" / "understudy"
ARRAYS = ("Array", "ndarray")


def fields(path):
    """The annotated fields of a module's classes."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            yield from (field for field in node.body if isinstance(field, ast.AnnAssign))


def test_no_field_of_arrays_is_annotated_by_a_string():
    """jaxtyping skips such fields without a word; `from __future__ import annotations` makes all of them strings."""
    unchecked = []
    for path in SOURCE.rglob("*.py"):
        strings = "from __future__ import annotations" in path.read_text()
        for field in fields(path):
            string = strings or isinstance(field.annotation, ast.Constant)
            if string and any(name in ast.unparse(field.annotation) for name in ARRAYS):
                unchecked.append(f"{path.relative_to(SOURCE)}:{field.lineno}")
    assert not unchecked, "remove the future import, and quote only names that are defined later"


def test_a_field_of_the_wrong_shape_is_noticed():
    with pytest.raises(TypeError, match="TwoLayer"):
        TwoLayer(jnp.zeros(3), jnp.zeros(3))
    with pytest.raises(TypeError, match="TwoLayer"):
        TwoLayer(jnp.zeros((3, 2)), jnp.zeros(4))


def test_a_field_is_checked_after_a_constructor_that_is_written_out():
    class Wrong(Empirical):
        def __init__(self):
            super().__init__(TwoLayer(jnp.ones((2, 2)), jnp.ones(2)), jnp.ones((5, 2)), jnp.ones(5), activation="erf")
            self.weights = jnp.ones((5, 1))

    with pytest.raises(TypeError, match="weights"):
        Wrong()


def test_fields_share_their_dimensions():
    class Pair(eqx.Module):
        first: Float[Array, " n"]
        second: Float[Array, " n"]

        def __init__(self, first, second):
            self.first, self.second = first, second

    Pair(jnp.ones(3), jnp.ones(3))
    with pytest.raises(TypeError, match="second"):
        Pair(jnp.ones(3), jnp.ones(4))
