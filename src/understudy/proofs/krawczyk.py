"""Existence and uniqueness of a zero of F(x) = ∇L(x) + s T0 T0ᵀ(x - x0) in a box, by Krawczyk's operator.

If K = x0 - A F(x0) + (I - A F'(X))(X - x0) lies inside the box X = x0 ± r for some matrix A, then F has exactly one
zero in X, and it lies in K.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.proofs.balls import Ball, Matrix, ball, column, from_floats, identity, largest, to_floats, within
from understudy.proofs.biased_enclosure import BiasedEnclosure
from understudy.proofs.enclosure import Enclosure, Evaluation
from understudy.proofs.frame import Frame
from understudy.proofs.symmetries import are_transversal, tangents

ROOM = 16
"""The error in the file is this factor times the proved one, because the checker's enclosures may be wider."""


class NotProvedError(ValueError):
    """A step of the proof failed. The message says which one and why."""


@dataclass(frozen=True)
class Zero:
    """A box `center` ± `radius` with exactly one zero across the symmetries, which is within `error` of the center.

    `loss`: of the zero; `over`: enclosures over the box; `jacobian`: of F, over the box.
    """

    radius: Ball
    error: Ball
    loss: Ball
    over: Evaluation
    jacobian: Matrix


def augmented(hessian: Matrix, base: Matrix | None) -> Matrix:
    """H + s T0 T0ᵀ, where s gives both terms the same size."""
    if base is None:
        return hessian
    bump = base * base.transpose()
    scale = np.abs(to_floats(hessian)).max() / np.abs(to_floats(bump)).max()
    return hessian + bump * ball(float(2.0 ** np.round(np.log2(scale))) if scale > 0 else 1)


def polish(enclosure: Enclosure | BiasedEnclosure, frame: Frame, start: np.ndarray, accuracy: float) -> list[Ball]:
    """Newton's method in high precision with one approximate inverse, until steps are shorter than `accuracy`."""
    x = [ball(float(v)) for v in start]
    here = enclosure.evaluate(x)
    jacobian = to_floats(augmented(here.hessian, tangents(enclosure, frame, x)))
    if not np.all(np.isfinite(jacobian)):
        raise NotProvedError("the Hessian is not finite at the point given")
    inverse = from_floats(_inverse(jacobian))
    scale, last = float(np.abs(start).max()), np.inf
    for _ in range(30):
        step = inverse * column(here.gradient)
        length = max(float(abs(s).mid()) for s in step.entries())
        if not length <= max(0.5 * last, accuracy):
            break
        x = [(v - s).mid() for v, s in zip(x, step.entries(), strict=True)]
        last = length
        if length <= accuracy:
            break
        here = enclosure.evaluate(x)
    moved = max(abs(float(v.mid()) - s) for v, s in zip(x, start, strict=True))
    if moved > 1e-5 * max(scale, 1e-300):
        raise NotProvedError(
            f"no critical point next to the given point: Newton's method moves it by {moved:.1e}, its largest entry is "
            f"{scale:.1e}"
        )
    return x


def _inverse(jacobian: np.ndarray) -> np.ndarray:
    try:
        inverse = np.linalg.inv(jacobian)
    except np.linalg.LinAlgError:
        raise NotProvedError(degenerate(jacobian)) from None
    if not np.all(np.isfinite(inverse)):
        raise NotProvedError(degenerate(jacobian))
    return inverse


def degenerate(jacobian: np.ndarray) -> str:
    """A sentence that says how many eigenvalues cannot be distinguished from zero."""
    values = np.linalg.eigvalsh((jacobian + jacobian.T) / 2)
    zeros = int(np.sum(np.abs(values) < 1e-10 * np.abs(values).max()))
    if not zeros:
        return "no box could be verified: enclosures are too wide"
    return f"degenerate: the Hessian has {zeros} eigenvalues that vanish to rounding beyond those of its symmetries"


def verify_zero(enclosure: Enclosure | BiasedEnclosure, frame: Frame, center: list[Ball], radius: float) -> Zero:
    """Prove that there is one zero within `radius`, or within a larger radius if the residual requires it."""
    here = enclosure.evaluate(center)
    inverse = from_floats(_inverse(to_floats(augmented(here.hessian, tangents(enclosure, frame, center)))))
    step = inverse * column(here.gradient)
    residual = largest(step.entries())
    wanted = max(radius, 8 * ROOM * float(residual))
    r = ball(f"{wanted:.1e}")
    box = [c + ball(0, r.abs_upper()) for c in center]
    base = tangents(enclosure, frame, center)
    if base is not None and not are_transversal(tangents(enclosure, frame, box), base):
        raise NotProvedError("degenerate: the continuous symmetries are not independent here")
    over = enclosure.evaluate(box)
    jacobian = augmented(over.hessian, base)
    rest = identity(len(center)) - inverse * jacobian
    contraction = largest(sum((abs(x) for x in row), ball(0)) for row in rest.tolist())
    error = ROOM * (residual + contraction * r)
    if not (contraction < 0.9 and error < r):  # comparisons with a ball that is not finite are false
        raise NotProvedError(degenerate(to_floats(augmented(here.hessian, base))))
    return Zero(r, error, _loss(here, over, error), over, jacobian)


def _loss(here: Evaluation, over: Evaluation, error: Ball) -> Ball:
    """The loss within `error` of the center, by Taylor's theorem: L + ∇L·e + ½ eᵀHe with H from the box."""
    slope = sum((abs(g) for g in here.gradient), ball(0))
    bend = sum((abs(h) for h in over.hessian.entries()), ball(0))
    return here.loss + within(slope * error + bend * error * error / 2)
