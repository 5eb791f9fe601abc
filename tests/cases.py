"""Which cases of a parametrised test run in `make test`, and which only in `make thorough`."""

import pytest


def thorough_but(every, quick):
    """`every` case for `pytest.mark.parametrize`; those not in `quick` are marked thorough."""
    every = list(every)
    unknown = [case for case in quick if case not in every]
    if unknown:
        raise ValueError(f"Quick cases that do not exist: {unknown}")
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=() if case in quick else pytest.mark.thorough
        )
        for case in every
    ]
