"""Continuous symmetries, whose directions T(x) are orthogonal to the gradient at every x, and the slice across them.

There are three kinds: (w_i, a_i) → (c w_i, a_i/c^p) for homogeneous activations, where trained biases scale like w_i;
w_i → c w_i on the sphere; and rotations of the directions beyond the teachers' span. Let T0 = T(x0).
If T(x)ᵀT0 is invertible, then

    ∇L(x) + s T0 T0ᵀ(x - x0) = 0    if and only if    ∇L(x) = 0 and T0ᵀ(x - x0) = 0

(multiply by T(x)ᵀ). At such an x the Hessian H has T(x) in its kernel, and H + s T0 T0ᵀ has the inertia of H with its
zeros along T(x) turned positive (split the space into the range of T(x) and the kernel of T0ᵀ).
"""

from __future__ import annotations

import numpy as np

from understudy.proofs.balls import Ball, Matrix, ball, from_floats, is_contraction, matrix, to_floats
from understudy.proofs.biased_enclosure import BiasedEnclosure
from understudy.proofs.enclosure import Enclosure
from understudy.proofs.frame import Frame
from understudy.proofs.named import HOMOGENEITY


def tangents(enclosure: Enclosure | BiasedEnclosure, frame: Frame, x: list[Ball]) -> Matrix | None:
    """T(x), one column per symmetry, or None if there are no symmetries. It does not depend on the units."""
    form, d, outputs, size = enclosure.form, enclosure.inputs, enclosure.outputs, enclosure.size
    n, step, columns = form.width, d + outputs, []
    rows = [x[i * step : (i + 1) * step] for i in range(n)]
    degree = HOMOGENEITY.get(form.activation) if form.fixed_bias is None else None
    sphere = form.loss == "sphere"
    if sphere or (outputs and degree is not None):
        for i in range(n):
            entries = [ball(0)] * size
            entries[i * step : i * step + d] = rows[i][:d]
            if outputs:
                entries[i * step + d : (i + 1) * step] = [-(degree or 0) * a for a in rows[i][d:]]
            columns.append(entries)
    for first in range(frame.rank, frame.dim):
        for second in range(first + 1, frame.dim):
            entries = [ball(0)] * size
            for i, row in enumerate(rows):
                entries[i * step + second] = row[first]
                entries[i * step + first] = -row[second]
            columns.append(entries)
    if not columns:
        return None
    return matrix(len(columns), size, (e for c in columns for e in c)).transpose()


def are_transversal(moved: Matrix, base: Matrix) -> bool:
    """Whether movedᵀ base is invertible for all of the enclosure, so that both have full rank."""
    product = moved.transpose() * base
    try:
        inverse = np.linalg.inv(to_floats(product))
    except np.linalg.LinAlgError:
        return False
    return bool(np.all(np.isfinite(inverse))) and is_contraction(from_floats(inverse) * product)


def outside_components(enclosure: Enclosure | BiasedEnclosure, frame: Frame, x: list[Ball]) -> Matrix:
    """Students' coordinates beyond the teachers' span, (n, extra): rotations out of the frame move them outside."""
    incoming, _ = enclosure.split(x)
    return matrix(len(incoming), frame.extra, (w[c, 0] for w in incoming for c in range(frame.rank, frame.dim)))
