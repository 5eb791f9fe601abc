"""Shared by the commands for PyTorch networks: read a module and its data."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn


def read_module(path: Path, module: str | None) -> nn.Module:
    """The network in a file; `module` names its class as package.file:Class where the file holds weights alone."""
    from understudy.torch import load

    return load(path, into=None if module is None else make_module(module))


def make_module(name: str) -> nn.Module:
    """An instance of the user's own class, from the working directory or the installed packages."""
    from torch import nn

    place, _, attribute = name.partition(":")
    if not place or not attribute:
        raise ValueError(
            f"--module is file:Class, such as networks:Net for class Net in networks.py; received {name!r}."
        )
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        made = getattr(importlib.import_module(place), attribute)()
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--module {name}: {error}.") from None
    except TypeError as error:
        raise ValueError(f"--module {name} is called without arguments and fails: {error}.") from None
    if not isinstance(made, nn.Module):
        raise ValueError(f"--module {name} must make a torch.nn.Module; it makes {type(made).__name__}.")
    return made


def read_module_data(path: Path) -> Any:
    """Inputs (N, …) of a .npy file, or `inputs` and `targets` of an .npz, ready for `understudy.torch`."""
    import numpy as np

    from understudy.data.checked import UNREADABLE

    if not path.is_file():
        raise ValueError(f"There is no file {path}. Give inputs as .npy, or inputs and targets in an .npz archive.")
    try:
        with path.open("rb") as opened:
            loaded = np.load(opened, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            arrays = {name: loaded[name] for name in loaded.files}
    except UNREADABLE as error:
        raise ValueError(f"{path} cannot be read as data: {error}. Give a .npy file of shape (N, …).") from None
    if "inputs" not in arrays:
        raise ValueError(f"{path} has no array 'inputs'; it has {', '.join(arrays) or 'none'}.")
    return (arrays["inputs"], arrays["targets"]) if "targets" in arrays else arrays["inputs"]
