"""Networks in files: weights in a plain NumPy archive, and networks from stored fits.

An archive (`.npz`) holds `W1`, …, `WL` of shapes (n_ℓ, n_{ℓ-1}). It may also hold biases `b1`, …, `bL` of shapes
(n_ℓ,), `activation` (text), `inputs` (N, d), and `targets` (N, m), or (N,) for one output or for class labels. NumPy
reads and writes it without this package:

    np.savez("network.npz", W1=..., b1=..., W2=..., b2=..., activation="relu", inputs=..., targets=...)

A stored fit (`.nc`, written by `understudy fit --out`) holds one two-layer network per seed.
"""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from understudy.data.checked import UNREADABLE
from understudy.files import write_atomically
from understudy.networks import Deep, TwoLayer
from understudy.store import DamagedFileError, OtherFormatError, read_result


class BadNetworkError(ValueError):
    """A file without a network, or with a network whose shapes do not match."""


@dataclass(frozen=True)
class StoredNetwork:
    """A network from a file: its parameters, its activation and data if the file has them, and its origin.

    `configuration`: of a stored fit, what was fitted and the `seed`; empty for an archive.
    """

    network: TwoLayer | Deep
    activation: str | None
    inputs: np.ndarray | None
    targets: np.ndarray | None
    source: str
    configuration: dict[str, Any] = field(default_factory=dict)
    precision: np.dtype = field(default_factory=lambda: np.dtype(float))
    """In which the file holds its weights; computations are in float64."""


def read_network(path: str | Path, seed: int | None = None) -> StoredNetwork:
    """The network in an archive, or that of one seed in a stored fit (default: the seed with the least loss)."""
    file = Path(path)
    if not file.is_file():
        raise BadNetworkError(
            f"There is no file {file}. Give an .npz archive of weights, or the .nc file of a stored fit."
        )
    if file.suffix == ".nc":
        return _from_fit(file, seed)
    if seed is not None:
        raise BadNetworkError(f"A seed chooses a network of a stored fit; {file.name} is an archive of one network.")
    return _from_archive(file)


def write_network(
    path: str | Path, network: TwoLayer | Deep, activation: str, *, like: StoredNetwork | None = None
) -> Path:
    """Write an archive; a two-layer network without biases has no b1 and b2. Data and precision are those of `like`."""
    arrays: dict[str, Any] = {}
    if isinstance(network, TwoLayer):
        outgoing = np.asarray(network.outgoing)
        arrays |= {"W1": np.asarray(network.incoming), "W2": outgoing[None] if outgoing.ndim == 1 else outgoing.T}
    else:
        for l, (w, b) in enumerate(zip(network.weights, network.biases, strict=True), start=1):
            arrays |= {f"W{l}": np.asarray(w), f"b{l}": np.asarray(b)}
    if like is not None:
        arrays = {name: array.astype(like.precision) for name, array in arrays.items()}
        arrays |= {k: v for k, v in (("inputs", like.inputs), ("targets", like.targets)) if v is not None}
    content = io.BytesIO()
    np.savez(content, activation=np.array(activation), **arrays)
    return write_atomically(path, content.getvalue())


def read_data(path: str | Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Inputs (N, d), and targets if present, from a .npy file of inputs or from an .npz file with both."""
    file = Path(path)
    if not file.is_file():
        raise BadNetworkError(
            f"There is no file {file}. Give inputs as .npy, or inputs and targets in an .npz archive."
        )
    try:
        with file.open("rb") as opened:
            loaded = np.load(opened, allow_pickle=False)
            if not isinstance(loaded, np.lib.npyio.NpzFile):
                return _columns(np.asarray(loaded, float)), None
            arrays = {name: loaded[name] for name in loaded.files}
    except UNREADABLE as error:
        raise BadNetworkError(f"{file} cannot be read as data: {error}. Give a .npy file of shape (N, d).") from error
    if "inputs" not in arrays:
        raise BadNetworkError(f"{file} has no array 'inputs'; it has {', '.join(arrays) or 'none'}.")
    return _data(arrays, file)


def _data(arrays: dict[str, np.ndarray], file: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """`inputs` as a matrix and `targets` of the same length."""
    inputs, targets = _columns(np.asarray(arrays["inputs"], float)), arrays.get("targets")
    if targets is not None and (targets.ndim not in (1, 2) or len(targets) != len(inputs)):
        raise BadNetworkError(
            f"{file}: {len(inputs)} inputs need targets of shape ({len(inputs)}, m) or ({len(inputs)},); received "
            f"{targets.shape}."
        )
    return inputs, targets


def _columns(x: np.ndarray) -> np.ndarray:
    """(N,) counts as (N, 1)."""
    return x[:, None] if x.ndim == 1 else x


def _from_archive(file: Path) -> StoredNetwork:
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
    except (*UNREADABLE, TypeError) as error:  # TypeError: one array (.npy) opens, but is not an archive
        why = "it holds Python objects, which are not read" if "allow_pickle" in str(error) else error
        raise BadNetworkError(f"{file} cannot be read as an archive of weights (.npz): {why}.") from error
    depth = sum(name[:1] == "W" and name[1:].isdigit() for name in arrays)
    weights = [arrays.get(f"W{l}") for l in range(1, depth + 1)]
    if depth < 2 or any(w is None for w in weights):
        raise BadNetworkError(
            f"An archive holds the weights W1, …, WL of at least two layers; {file} has "
            f"{', '.join(sorted(arrays)) or 'nothing'}."
        )
    if any(np.iscomplexobj(array) for array in arrays.values()):
        raise BadNetworkError(f"{file} has complex numbers; weights and data are real.")
    precision = np.result_type(*(w for w in weights if w is not None))
    known = [np.asarray(w, float) for w in weights if w is not None]
    biases = [np.asarray(arrays.get(f"b{l}", np.zeros(len(w))), float) for l, w in enumerate(known, start=1)]
    for l, (w, b) in enumerate(zip(known, biases, strict=True), start=1):
        before = known[l - 2].shape[0] if l > 1 else None
        if w.ndim != 2 or b.shape != (w.shape[0],) or (before is not None and w.shape[1] != before):
            raise BadNetworkError(
                f"{file}: layer {l} has weights {w.shape} and bias {b.shape}; W{l} is (n_{l}, n_{l - 1}) and b{l} is "
                f"(n_{l},)" + ("." if before is None else f" with n_{l - 1} = {before}.")
            )
        if not (np.all(np.isfinite(w)) and np.all(np.isfinite(b))):
            raise BadNetworkError(f"{file}: layer {l} has weights that are not finite.")
        largest = max(np.abs(w).max(initial=0), np.abs(b).max(initial=0))
        if largest > 1e100:
            raise BadNetworkError(f"{file}: layer {l} has weights as large as {largest:.1e}, whose squares overflow.")
    network: TwoLayer | Deep
    if depth == 2 and not any(name[:1] == "b" and name[1:].isdigit() for name in arrays):
        network = TwoLayer(known[0], known[1][0] if len(known[1]) == 1 else known[1].T)
    else:
        network = Deep(tuple(jnp.asarray(w) for w in known), tuple(jnp.asarray(b) for b in biases))
    activation = str(arrays["activation"]) if "activation" in arrays else None
    inputs, targets = _data(arrays, file) if "inputs" in arrays else (None, None)
    return StoredNetwork(
        network,
        activation,
        inputs,
        targets,
        file.name,
        precision=precision if precision.kind == "f" else np.dtype(float),
    )


def _from_fit(file: Path, seed: int | None) -> StoredNetwork:
    try:
        rows = read_result(file)
    except (DamagedFileError, OtherFormatError, OSError) as error:
        raise BadNetworkError(str(error)) from error
    if "incoming" not in rows or "outgoing" not in rows:
        raise BadNetworkError(f"{file} is a stored result without networks; give one of `understudy fit`.")
    seeds = [int(s) for s in rows["seed"].values]
    losses = rows["loss"].values
    if seed is None and np.all(np.isnan(losses)):
        raise BadNetworkError(
            f"{file.name} has no best run: the losses of its seeds {seeds} are not numbers. Give --seed."
        )
    chosen = seeds[int(np.nanargmin(losses))] if seed is None else seed
    if chosen not in seeds:
        raise BadNetworkError(f"{file.name} has no seed {chosen}; it has {', '.join(map(str, seeds))}.")
    row = rows.sel(seed=chosen)
    configuration = json.loads(rows.attrs["configuration"])
    told = {**configuration, "seed": chosen}
    activation = told.get("student_activation", told.get("activation"))
    return StoredNetwork(_of_row(row), activation, None, None, f"{file.name}, seed {chosen}", told)


def _of_row(row: Any) -> TwoLayer | Deep:
    """The network of one seed; one with biases is `Deep`, as from an archive."""
    incoming, outgoing = row["incoming"].values, row["outgoing"].values
    if "bias" not in row:
        return TwoLayer(incoming, outgoing)
    last = outgoing[None] if outgoing.ndim == 1 else outgoing.T
    biases = row["bias"].values, np.atleast_1d(row["offset"].values)
    return Deep((jnp.asarray(incoming), jnp.asarray(last)), tuple(jnp.asarray(b) for b in biases))
