"""Beartype with the numeric tower of PEP 484 (an int is a float, as mypy has it), for jaxtyping's import hook."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
