"""MNIST from the user's own copy, or fetched on request. It is verified byte by byte and never replaced by other data.

It is searched for in this order: the given path; `$UNDERSTUDY_DATA`; the cache directory, where fetched files are kept.
A path is a file `mnist.npz` with arrays `x_train`, `y_train`, `x_test`, `y_test`, or a directory with that file or with
the four original IDX files, gzipped or not. `python -m understudy.data` fetches it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from understudy.compilation import cache_directory
from understudy.data.checked import UNREADABLE, Images, read_npz, verify
from understudy.data.errors import MissingDataError, WrongDataError
from understudy.files import write_atomically

MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)
"""The mirrors that TensorFlow and PyTorch fetch from; the original host no longer serves the files."""

PARTS = ("x_train", "y_train", "x_test", "y_test")
FILES = {
    "x_train": ("train-images-idx3-ubyte", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    "y_train": ("train-labels-idx1-ubyte", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    "x_test": ("t10k-images-idx3-ubyte", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    "y_test": ("t10k-labels-idx1-ubyte", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
}
"""Each part: the name of its IDX file, and the SHA-256 of that file gzipped as distributed."""

CONTENT = {
    "x_train": "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
    "y_train": "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
    "x_test": "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
    "y_test": "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
}
"""SHA-256 of the bytes of each array, however it is packed: this distinguishes MNIST from anything else."""


Opener = Callable[[str], bytes]


def mnist(
    path: str | Path | None = None,
    *,
    fetch: bool = False,
    cache: Path | None = None,
    mirrors: Sequence[str] = MIRRORS,
    opener: Opener | None = None,
) -> Images:
    """Read MNIST: 60,000 digits of 28 × 28 pixels to train and 10,000 to test.

    It comes from the user's copy or from the cache, or is fetched into the cache if `fetch` is true. Raises
    `MissingDataError` if it is not found, and `WrongDataError` if the files are not MNIST, byte for byte.
    """
    cache = cache_directory() / "data" / "mnist" if cache is None else cache
    named = os.environ.get("UNDERSTUDY_DATA")
    known = [Path(named), Path(named) / "mnist", cache] if named else [cache]
    places = known if path is None else [Path(path)]
    for place in places:
        arrays = _read(place)
        if arrays is not None:
            verify(arrays, CONTENT, "MNIST", place)
            return Images(**arrays, place=place)
    if not fetch:
        looked = ", ".join(str(p) for p in places)
        raise MissingDataError(
            f"MNIST was not found; looked in: {looked}. Set UNDERSTUDY_DATA to a directory with mnist.npz (arrays "
            f"{', '.join(PARTS)}) or with the four files {', '.join(name + '.gz' for name, _ in FILES.values())}, or "
            "run `python -m understudy.data` to fetch it."
        )
    for part in PARTS:
        name, digest = FILES[part]
        _fetch(f"{name}.gz", digest, cache, mirrors, opener or _download)
    arrays = _read(cache)
    assert arrays is not None
    verify(arrays, CONTENT, "MNIST", cache)
    return Images(**arrays, place=cache)


def _read(place: Path) -> dict[str, np.ndarray] | None:
    """The four arrays at a path; None if nothing is there."""
    if place.is_file():
        return read_npz(place, PARTS)
    if (place / "mnist.npz").is_file():
        return read_npz(place / "mnist.npz", PARTS)
    files = {part: _existing(place, FILES[part][0]) for part in PARTS}
    return {part: _read_idx(file) for part, file in files.items() if file} if all(files.values()) else None


def _existing(place: Path, name: str) -> Path | None:
    return next((p for p in (place / f"{name}.gz", place / name) if p.is_file()), None)


def _read_idx(file: Path) -> np.ndarray:
    """An IDX file: two zero bytes, the type (8: unsigned byte), the number of axes, big-endian lengths, the entries."""
    try:
        raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        axes = raw[3]
        shape = tuple(int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(axes))
        if raw[:3] != b"\x00\x00\x08":
            raise ValueError(f"it begins with {raw[:4].hex()}")
        return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)
    except UNREADABLE as error:
        raise WrongDataError(
            f"{file} is not an IDX file of unsigned bytes ({error}). Delete it and fetch it again."
        ) from error


def _fetch(name: str, digest: str, cache: Path, mirrors: Sequence[str], opener: Opener) -> None:
    """Fetch one file into the cache, from the first mirror that delivers the right bytes."""
    target = cache / name
    if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == digest:
        return
    problems = []
    for mirror in mirrors:
        try:
            content = opener(mirror + name)
        except (OSError, urllib.error.URLError) as error:
            problems.append(f"{mirror}: {error}")
            continue
        found = hashlib.sha256(content).hexdigest()
        if found != digest:
            problems.append(f"{mirror}: SHA-256 {found[:16]}… instead of {digest[:16]}…")
            continue
        write_atomically(target, content)
        return
    raise MissingDataError(f"{name} could not be fetched. " + "; ".join(problems) + ". Is there a connection?")


def _download(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as response:
        return response.read()
