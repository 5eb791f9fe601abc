"""Networks in files: state_dict (.pt, .pth), .safetensors, .pt2, .onnx and our .npz. Nothing unpickles code.

`torch.load` is called with `weights_only=True` always: a file that needs more is refused.
"""

from __future__ import annotations

import io
import logging
import pickle
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from understudy.files import write_atomically
from understudy.torch.batches import is_finite
from understudy.torch.chains import chain_of
from understudy.torch.edit import set_tensor
from understudy.torch.programs import read_program

KINDS = ".pt, .pth, .bin (a state_dict), .safetensors, .pt2, .onnx or .npz"


class BadFileError(ValueError):
    """A file that holds no network, or one that does not fit."""


def save(model: nn.Module, path: str | Path, *, example: Any = None) -> Path:
    """Write a model atomically, in the format that the ending of the path names.

    .pt, .pth, .bin and .safetensors hold the state_dict, .npz the arrays of a plain chain; .pt2 and .onnx hold the
    program and need `example` inputs.
    """
    file = Path(path)
    content = io.BytesIO()
    if file.suffix in (".pt", ".pth", ".bin"):
        torch.save(model.state_dict(), content)
    elif file.suffix == ".safetensors":
        from safetensors.torch import save as as_bytes

        content.write(as_bytes({name: tensor.contiguous().clone() for name, tensor in model.state_dict().items()}))
    elif file.suffix in (".pt2", ".onnx"):
        content.write(_exported(model, file.suffix, example))
    elif file.suffix == ".npz":
        np.savez(content, **_archive(model))  # type: ignore[arg-type]
    else:
        raise ValueError(f"path ends in {KINDS}; received {file.name!r}.")
    return write_atomically(file, content.getvalue())


def _exported(model: nn.Module, suffix: str, example: Any) -> bytes:
    """The program for any number of inputs, in evaluation mode."""
    from understudy.torch.model import evaluating

    if example is None:
        raise ValueError(f"{suffix} stores a program: give example=, a few inputs.")
    inputs = tuple(example) if isinstance(example, tuple | list) else (example,)
    dynamic = tuple({0: torch.export.Dim.DYNAMIC} for _ in inputs)
    with evaluating(model), warnings.catch_warnings(), tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / f"program{suffix}"
        warnings.simplefilter("ignore")  # about PyTorch's own internals
        program = torch.export.export(model, inputs, dynamic_shapes=dynamic)
        if suffix == ".pt2":
            torch.export.save(program, file)
        else:
            with _quiet():
                torch.onnx.export(program, (), str(file), external_data=False, verbose=False)
        return file.read_bytes()


@contextmanager
def _quiet() -> Iterator[None]:
    """No notes of the exporter about libraries that are not installed."""
    notes = logging.getLogger("torch.onnx")
    before = notes.level
    notes.setLevel(logging.ERROR)
    try:
        yield
    finally:
        notes.setLevel(before)


def _archive(model: nn.Module) -> dict[str, np.ndarray]:
    """W1, b1, … of a chain of Linear layers with one kind of activation."""
    found: dict[str, np.ndarray] = {}
    layers = [m for m in model.modules() if isinstance(m, nn.Linear)]
    others = {type(m).__name__.lower() for m in model.modules() if not list(m.children())} - {
        "linear",
        "dropout",
        "identity",
        "flatten",
    }
    if len(layers) < 2 or len(others) != 1:
        raise ValueError(
            f".npz holds chains of Linear layers with one activation; received {len(layers)} and {sorted(others)}."
        )
    for number, layer in enumerate(layers, start=1):
        found[f"W{number}"] = layer.weight.detach().cpu().numpy()
        if layer.bias is not None:
            found[f"b{number}"] = layer.bias.detach().cpu().numpy()
    return {**found, "activation": np.array(others.pop())}


def read_state(path: str | Path) -> dict[str, torch.Tensor]:
    """The tensors of a file by name, without running anything that is in it."""
    file = Path(path)
    if not file.is_file():
        raise BadFileError(f"There is no file {file}. Give a network as {KINDS}.")
    readers = {".safetensors": _safetensors, ".npz": _npz, ".onnx": _onnx, ".pt2": _pt2}
    read = readers.get(file.suffix, _torch if file.suffix in (".pt", ".pth", ".bin", ".ckpt") else None)
    if read is None:
        raise BadFileError(f"{file.name} has an unknown file ending. Give a network as {KINDS}.")
    state = read(file)
    if not state:
        raise BadFileError(f"{file} has no tensors.")
    for name, tensor in state.items():
        if tensor.is_complex():
            raise BadFileError(f"{file}: {name} is complex; networks are real.")
        if tensor.is_floating_point() and not is_finite(tensor):
            raise BadFileError(f"{file}: {name} has values that are not finite (NaN or infinity).")
    return state


def _torch(file: Path) -> dict[str, torch.Tensor]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about forms of pickle that are refused anyway
            loaded = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise BadFileError(
            f"{file} holds more than tensors (such as a whole module), and reading it could run code: refused. In the "
            "program that made it, "
            "save model.state_dict() instead."
        ) from error
    except (
        RuntimeError,
        EOFError,
        OSError,
        ValueError,
        KeyError,
        IndexError,
        AttributeError,
        zipfile.BadZipFile,
    ) as error:
        raise BadFileError(f"{file} cannot be read as a state_dict: {_first(error)} Is it complete?") from error
    for key in ("state_dict", "model_state_dict", "model"):
        if isinstance(loaded, Mapping) and isinstance(loaded.get(key), Mapping):
            loaded = loaded[key]
    if not isinstance(loaded, Mapping) or not all(isinstance(v, torch.Tensor) for v in loaded.values()):
        raise BadFileError(f"{file} holds no state_dict (names and tensors) but {type(loaded).__name__}.")
    return dict(loaded)


def _safetensors(file: Path) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(file)
    except (SafetensorError, OSError, ValueError) as error:
        raise BadFileError(f"{file} cannot be read as safetensors: {_first(error)} Is it complete?") from error


def _npz(file: Path) -> dict[str, torch.Tensor]:
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files if name[:1] in "Wb" and name[1:].isdigit()}
    except (OSError, ValueError, EOFError, TypeError, MemoryError, zipfile.BadZipFile, pickle.UnpicklingError) as error:
        raise BadFileError(f"{file} cannot be read as an archive of weights W1, b1, …: {_first(error)}") from error
    names = {"W": "weight", "b": "bias"}
    order = sorted(arrays, key=lambda name: (int(name[1:]), name[0] == "b"))
    return {f"{2 * (int(n[1:]) - 1)}.{names[n[0]]}": torch.from_numpy(arrays[n]).float() for n in order}


def _onnx(file: Path) -> dict[str, torch.Tensor]:
    import onnx
    from google.protobuf.message import DecodeError
    from onnx import numpy_helper

    try:
        program = onnx.load(str(file), load_external_data=False)
        return {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in program.graph.initializer if t.dims}
    except (DecodeError, ValueError, OSError, TypeError, onnx.checker.ValidationError) as error:
        raise BadFileError(f"{file} cannot be read as ONNX: {_first(error)} Is it complete?") from error


def _pt2(file: Path) -> dict[str, torch.Tensor]:
    return dict(_program(file).state_dict)


def _program(file: Path) -> Any:
    try:
        return read_program(file)
    except Exception as error:  # PyTorch's reader fails in many ways
        raise BadFileError(f"{file} cannot be read as a program of torch.export (.pt2): {_first(error)}") from error


def _first(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".") + "."


def load(path: str | Path, into: nn.Module | None = None) -> nn.Module:
    """The network in a file.

    **Arguments**

    - `path`: a .pt, .pth, .bin (state_dict), .safetensors, .pt2, .onnx or .npz file; nothing in it is executed.
    - `into`: an instance of the network's class, of the original widths or any other: its layers take the shapes of the
      file, in place. It is needed for a state_dict, unless that is a plain chain of Linear layers; `.pt2` needs none.
    """
    file = Path(path)
    if into is None and file.suffix == ".pt2":
        read_state(file)
        return _program(file).module(check_guards=False)
    state = read_state(file)
    if into is None:
        return chain_of(state, file.name)
    load_state(into, state, str(file))
    return into


def load_state(model: nn.Module, state: Mapping[str, torch.Tensor], source: str = "state_dict") -> nn.Module:
    """Put these tensors into the model, whose layers take their widths from them."""
    own = {**dict(model.named_parameters()), **{n: b for n, b in model.named_buffers() if n in model.state_dict()}}
    missing, extra = sorted(set(own) - set(state)), sorted(set(state) - set(own))
    if missing or extra:
        raise BadFileError(
            f"{source} does not belong to this model: missing {missing[:3]}, not known to the model {extra[:3]}."
        )
    for name, tensor in state.items():
        if tensor.ndim != own[name].ndim:
            raise BadFileError(
                f"{source}: {name} has shape {tuple(tensor.shape)}, and the model's has {own[name].ndim} axes."
            )
    for name, tensor in state.items():
        set_tensor(model, name, tensor)
    return model
