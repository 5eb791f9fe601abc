"""Beartype for jaxtyping's import hook, and for the fields of Equinox modules."""

from dataclasses import fields

from beartype import BeartypeConf, beartype
from beartype.door import is_bearable
from jaxtyping import jaxtyped

# The numeric tower of PEP 484: an int is a float, as mypy has it.
CONFIGURATION = BeartypeConf(is_pep484_tower=True)
check = beartype(conf=CONFIGURATION)


def check_fields(module: object) -> None:
    """Compare each field with its annotation once the constructor is done.

    The import hook checks the arguments of constructors, which are the fields only where the constructor is generated.
    Annotations that are strings are skipped: `test_annotations.py` allows none for arrays.
    """
    with jaxtyped("context"):
        for field in fields(module):  # type: ignore[arg-type]
            value = getattr(module, field.name)
            if not isinstance(field.type, str) and not is_bearable(value, field.type, conf=CONFIGURATION):
                shape = getattr(value, "shape", "none")
                raise TypeError(
                    f"{type(module).__name__}.{field.name} is not {field.type}: {type(value)}, shape {shape}"
                )
