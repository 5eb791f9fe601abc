"""Which cases of a parametrised test run in `make test`, and which only in `make thorough`."""

import pytest


def thorough_but(every, quick):
    """`every` case for `pytest.mark.parametrize`; those not in `quick` (cases, or their first entries) are marked thorough."""
    cases = [case if isinstance(case, tuple) else (case,) for case in every]
    unknown = [name for name in quick if not any(_is(case, name) for case in cases)]
    if unknown:
        raise ValueError(f"Quick cases that do not exist: {unknown}")
    return [
        pytest.param(*case, marks=() if any(_is(case, name) for name in quick) else pytest.mark.thorough)
        for case in cases
    ]


def _is(case, name):
    return case[0] == name or case == name
