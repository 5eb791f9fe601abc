"""Split-cone starts: every student nearest to a teacher of its own (Ottlik, Lemmas 3.1 and 3.2).

With factor 1/n on the repulsion let every student satisfy w_i·v_i ≥ t = 2^(-1/2) + ε, and s = √(1 - t²). Let the rest
of w_0 lie along a rival teacher v_l, where the attraction pulls w_0·v_0 up by t^(ρ-1)s² - t s^ρ only, and let each
student j ≠ 0, l use its freedom s to lean in the plane of v_0 and v_l by an angle χ off w_0: it pushes w_0·v_0 down by
s^(ρ+1) cos^(ρ-1)χ sin χ / n. The student of v_l, if there is one, can keep out of the way. For small ε the m pushes
win, m = n - 2 if v_l has a student and n - 1 if not, and w_0 leaves its cone; if it crosses over to v_l before the
others have moved away, the lemma's conclusion fails. The paper's proof assumes |w_i·w_j| ≤ s², which bounds a push by
t³s^(2ρ-2); overlaps can be up to 2ts, and the true pushes are larger.
"""

from __future__ import annotations

import math

import numpy as np

ROOT_HALF = math.sqrt(0.5)


def bound(degree: int) -> float:
    """The lemma's ε = 1/(40(ρ - 3.9))."""
    return 1 / (40 * (degree - 3.9))


def leaving_threshold(degree: int, share: float) -> float:
    """The ε below which `worst_start` leaves its cone at once, for m/n = `share`; see the module.

    t^(ρ-1)s² - t s^ρ = share · s^(ρ+1) M_ρ, where M_ρ = max cos^(ρ-1)χ sin χ = (1 - 1/ρ)^((ρ-1)/2) / √ρ.
    """
    largest = (1 - 1 / degree) ** ((degree - 1) / 2) / math.sqrt(degree)

    def excess(t: float) -> float:
        s = math.sqrt(1 - t * t)
        return t ** (degree - 1) * s * s - t * s**degree - share * s ** (degree + 1) * largest

    if share == 0:
        return 0.0
    # Divided by s^(ρ+1) the excess is (t/s)^(ρ-1) - t/s - share·M, which grows with t from its negative value at
    # 2^(-1/2).
    low, high = ROOT_HALF, 1 - 1e-9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) >= 0 else (middle, high)
    return high - ROOT_HALF


def velocity(rows: np.ndarray, degree: int) -> np.ndarray:
    """d(w_0·v_0)/dt / ρ of configurations (…, n, d) with teachers e_j and factor 1/n."""
    n = rows.shape[-2]
    w, overlaps = rows[..., 0, :], np.einsum("...d,...jd->...j", rows[..., 0, :], rows[..., 1:, :])
    own = w[..., 0]
    attraction = own ** (degree - 1) - own * np.sum(w**degree, axis=-1)
    repulsion = np.sum(overlaps ** (degree - 1) * (rows[..., 1:, 0] - overlaps * own[..., None]), axis=-1)
    return np.asarray(attraction - repulsion / n)


def worst_start(degree: int, n: int, k: int, epsilon: float, lean: float = 1.0) -> np.ndarray:
    """Rows (n, k) on the boundary of the cones where student 0 is pushed toward the last teacher.

    `lean` is χ in units of the angle that pushes hardest at first; a little more pushes longer.
    """
    t = ROOT_HALF + epsilon
    s = math.sqrt(1 - t * t)
    psi = math.atan2(s, t) - lean * math.atan(1 / math.sqrt(degree - 1))
    rows = np.zeros((n, k))
    rows[0, 0], rows[0, k - 1] = t, s
    for j in range(1, n):
        if j == k - 1:
            rows[j, 0], rows[j, j] = -s, t
        else:
            rows[j, j], rows[j, 0], rows[j, k - 1] = t, s * math.cos(psi), s * math.sin(psi)
    return rows
