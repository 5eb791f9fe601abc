"""The verdict on a point, with the numbers behind it."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from understudy.points.dead_neurons import WayDown
from understudy.points.higher_order import HigherOrder
from understudy.points.surroundings import Rounding

Kind = Literal["minimum", "strict saddle", "non-strict saddle", "undecided", "diverging", "unconverged"]


@dataclass(frozen=True)
class Certificate:
    """The verdict on a point, with the numbers behind it and the scales that were examined.

    - `kind`: `"minimum"` (flat minima included), `"strict saddle"` (the Hessian has a negative eigenvalue, or on a kink
      the loss falls at second order), `"non-strict saddle"` (the loss falls, but only at third or higher order),
      `"undecided"` (critical, but double precision or the test does not decide the kind), `"diverging"` (the run goes
      to infinity), `"unconverged"` (no critical point is near).
    - `gradient_norm`, `newton_decrement` (√(gᵀH⁺g), an estimate of √(2 × excess loss)).
    - `distance`: an exact critical point lies within about this distance (Newton's step, and the distance that Newton's
      method travelled).
    - `eigenvalues`: ascending, with `multiplicities` (directions orthogonal to all neurons share eigenvalues);
      `least_eigenvalue` is the first. `threshold`: eigenvalues of at most this size may be zero; `index`, `zeros`,
      `positives`: the inertia. On a kink they are those of curvatures along the kink, and `index` also counts the
      direction across the kink in which the loss falls, if one was found: it is a lower bound there, and at least 1 for
      a strict saddle.
    - `rounding`: the measured rounding of loss, gradient and Hessian at this point.
    - `explained`: zero modes along which the function stays the same; `unexplained`: the others. `flat_dimension`:
      dimension of the set of equally good points around a minimum.
    - `radii`: the smallest and the largest distance at which the loss was examined along zero modes; empty where the
      Hessian or a lower bound of the loss decides. `drop`: the smallest fall of the loss that would have been seen.
    - `directions`: unit vectors (rows, flat parameters) along which the loss falls, as far as they are known.
    - `way_down`: lower losses through a neuron without outgoing weight, or signs of them; `higher_order`: evidence of
      the test along zero modes, where one was needed.
    - `evidence`: the reasons, in words; `method`: `"dense"` or `"matrix-free"`.
    - `proof`: the result of ball arithmetic, if you asked for a proof; see `understudy.proofs`.

    Where parameters or losses are far from order one, distances and eigenvalues are those in natural units (see
    `points.surroundings`), and `evidence` says so.
    """

    kind: Kind
    loss: float
    gradient_norm: float
    newton_decrement: float
    least_eigenvalue: float
    index: int
    zeros: int
    positives: int
    threshold: float
    explained: int
    unexplained: int
    flat_dimension: int
    method: Literal["dense", "matrix-free"]
    evidence: tuple[str, ...]
    eigenvalues: np.ndarray = field(repr=False)
    multiplicities: np.ndarray = field(repr=False)
    higher_order: HigherOrder | None = None
    way_down: WayDown | None = None
    proof: Any = None
    distance: float = float("nan")
    radii: tuple[float, ...] = ()
    drop: float = float("nan")
    rounding: Rounding | None = None
    directions: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)), repr=False)


def bare(
    kind: Kind, loss: float, norm: float, words: tuple[str, ...], method: Literal["dense", "matrix-free"] = "dense"
) -> Certificate:
    """A certificate without a spectrum."""
    nan, empty = float("nan"), np.zeros(0)
    return Certificate(kind, loss, norm, nan, nan, 0, 0, 0, nan, 0, 0, 0, method, words, empty, empty.astype(int))
