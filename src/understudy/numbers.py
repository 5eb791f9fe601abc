"""Arrays of numbers from users."""

from typing import Any

import numpy as np


def real_array(given: Any, name: str) -> np.ndarray:
    """`given` as an array of float64. `ValueError` says what else it is: text, complex numbers, rows of unequal length.

    **Arguments**

    - `name`: what the numbers are, for the message.

    >>> real_array([1, 2], "The mean")
    array([1., 2.])
    """
    try:
        array = np.asarray(given)
        if array.dtype.kind in "SUc":
            kind = "complex numbers" if array.dtype.kind == "c" else "text"
            raise ValueError(f"{name} must be real numbers; received {kind}: {_short(given)}.")
        if array.dtype.kind == "O":  # float(None) raises, where NumPy would make it NaN
            return np.array([float(x) for x in array.flat]).reshape(array.shape)
        return array.astype(float)
    except (TypeError, ValueError) as error:
        if str(error).startswith(name):
            raise
        raise ValueError(
            f"{name} must be an array of numbers, with rows of the same length; received {_short(given)}."
        ) from None


def _short(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:57]}..."
