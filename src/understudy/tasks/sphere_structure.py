"""The structure of students on the sphere: copies, averages, and pairs that share a teacher."""

from __future__ import annotations

from collections import Counter

import numpy as np
from jaxtyping import Float

from understudy.tasks.structure import Neuron, Role, Structure

CLOSE = 1e-4
"""Distance up to which a student is what it is called. A flow that stops at a gradient norm of 1e-13 next to a
degenerate point, where the gradient is 64 s³, is within 2e-5 of it; distinct classes are 1e-2 or more apart for degrees
up to 20."""

_ORDER = (
    "copy",
    "average",
    "idle",
    "tight-pair",
    "outside-pair",
    "split-pair",
    "leaning-pair",
    "balance-pair",
    "same-copy",
    "same-average",
    "other",
)


def read_sphere(w: Float[np.ndarray, "n d"], v: Float[np.ndarray, "k d"], degree: int) -> Structure:
    """Find out which unit teachers v the unit students w copy and share. The label counts the parts.

    An example is `1-copy-1-tight-pair`.

    - *copy*: w = ±v_j (+ only, for odd degrees); *same-copy*: several students copy one teacher.
    - *average*: equal shares of two or more teachers; *same-average*: several students at one average.
    - *balance-pair*: two orthogonal averages of the same two teachers.
    - *tight-pair*: two students symmetric about a teacher v_j, in the plane of v_j and another teacher;
      *outside-pair*: in a plane of v_j and a direction orthogonal to all teachers; *split-pair*: symmetric about v_j
      in another plane.
    - *leaning-pair*: two students in the plane of two teachers that are neither symmetric nor orthogonal.
    - *idle*: orthogonal to every teacher that no other student copies, so that no force acts on it (ρ > 2).
    - *other*: none of these.
    """
    reader = _Reader(w, v, even=degree % 2 == 0)
    parts = reader.parts()
    counts = Counter(name for name, _ in parts)
    label = "-".join(f"{counts[name]}-{name}" for name in _ORDER if counts[name])
    roles: list[Neuron] = [Neuron("other", (), 1, 0.0)] * len(w)
    for name, members in parts:
        for i in members:
            roles[i] = reader.neuron(i, name, members)
    return Structure(label, tuple(roles), reader.distance)


class _Reader:
    def __init__(self, w: np.ndarray, v: np.ndarray, even: bool):
        self.w, self.v, self.even = w, v, even
        self.distance = 0.0

    def parts(self) -> list[tuple[str, tuple[int, ...]]]:
        """Each part: its name and the students that form it."""
        left = list(range(len(self.w)))
        parts: list[tuple[str, tuple[int, ...]]] = []
        for name, home in (("copy", self.copied), ("average", self.averaged)):
            places: dict[tuple, list[int]] = {}
            for i in left:
                place = home(self.w[i])
                if place is not None:
                    places.setdefault(place, []).append(i)
            for members in places.values():
                parts.append((name if len(members) == 1 else f"same-{name}", tuple(members)))
            left = [i for i in left if not any(i in members for members in places.values())]
        parts = self._balances(parts)
        while left:
            first = left.pop(0)
            partner = max(left, key=lambda j: abs(self.w[first] @ self.w[j]), default=None)
            if partner is None or abs(self.w[first] @ self.w[partner]) < CLOSE:
                taken = [self.copied(self.w[m[0]]) for name, m in parts if name == "copy"]
                open_teachers = [j for j in range(len(self.v)) if (j,) not in taken]
                idle = np.abs(self.v[open_teachers] @ self.w[first]).max(initial=0.0) < CLOSE
                parts.append(("idle" if idle else "other", (first,)))
            else:
                left.remove(partner)
                parts.append((self._pair(first, partner), (first, partner)))
        return parts

    def copied(self, w: np.ndarray) -> tuple[int, ...] | None:
        """The teacher that w copies."""
        u = self.v @ w
        j = int(np.argmax(np.abs(u)))
        sign = np.sign(u[j]) if self.even else 1.0
        return self._within(float(np.linalg.norm(w - sign * self.v[j])), (j,))

    def averaged(self, w: np.ndarray) -> tuple[int, ...] | None:
        """The teachers of which w is the average, with relative signs, which distinguish different averages."""
        coefficients = np.linalg.lstsq(self.v.T, w, rcond=None)[0]
        group = np.flatnonzero(np.abs(coefficients) > 0.5 * np.abs(coefficients).max())
        if len(group) < 2:
            return None
        signs = np.sign(coefficients[group]).astype(int)
        ideal = signs @ self.v[group]
        signs = signs * (signs[0] if self.even else 1)
        place = tuple(x for pair in zip(group.tolist(), signs.tolist(), strict=True) for x in pair)
        return self._within(float(np.linalg.norm(w - ideal / np.linalg.norm(ideal))), place)

    def _within(self, gap: float, place: tuple[int, ...]) -> tuple[int, ...] | None:
        if gap > CLOSE:
            return None
        self.distance = max(self.distance, float(gap))
        return place

    def _balances(self, parts: list[tuple[str, tuple[int, ...]]]) -> list[tuple[str, tuple[int, ...]]]:
        """The parts, with orthogonal averages of the same two teachers joined."""
        singles = [m[0] for name, m in parts if name == "average"]
        kept = [p for p in parts if p[0] != "average"]
        while singles:
            i = singles.pop(0)
            teachers = set((self.averaged(self.w[i]) or ())[::2])
            match = [j for j in singles if set((self.averaged(self.w[j]) or ())[::2]) == teachers]
            match = [j for j in match if len(teachers) == 2 and abs(self.w[i] @ self.w[j]) < CLOSE]
            if match:
                singles.remove(match[0])
                kept.append(("balance-pair", (i, match[0])))
            else:
                kept.append(("average", (i,)))
        return kept

    def _pair(self, i: int, j: int) -> str:
        first, second = self.w[i], self.w[j]
        if self.even and first @ second < 0:
            second = -second
        middle, across = first + second, first - second
        if np.linalg.norm(across) < CLOSE:
            return "other"
        middle, across = middle / np.linalg.norm(middle), across / np.linalg.norm(across)
        if self.copied(middle) is not None:
            if np.abs(self.v @ across).max() < CLOSE:
                return "outside-pair"
            u = self.v @ across
            l = int(np.argmax(np.abs(u)))
            gap = np.linalg.norm(across - np.sign(u[l]) * self.v[l])
            return "tight-pair" if gap < CLOSE else "split-pair"
        coefficients = np.abs(np.linalg.lstsq(self.v.T, np.stack([first, second], axis=1), rcond=None)[0]).max(axis=1)
        used = np.flatnonzero(coefficients > CLOSE)
        inside = np.stack([first, second]) @ np.linalg.pinv(self.v[used]) @ self.v[used]
        planar = len(used) == 2 and np.abs(inside - np.stack([first, second])).max() < CLOSE
        return "leaning-pair" if planar else "other"

    def neuron(self, i: int, name: str, members: tuple[int, ...]) -> Neuron:
        """The student as part of a group with this name."""
        u = self.v @ self.w[i]
        best = int(np.argmax(np.abs(u)))
        sign = int(np.sign(u[best])) if u[best] else 1
        gap = float(np.linalg.norm(self.w[i] - sign * self.v[best]))
        if name.startswith("same") and i != members[0]:
            return Neuron("duplicate", (best,), sign, gap, members[0])
        roles: dict[str, Role] = {"copy": "copy", "same-copy": "copy", "average": "average", "same-average": "average"}
        return Neuron(roles.get(name, "other"), (best,), sign, gap)


def orbit_key(rows: np.ndarray) -> tuple[float, ...]:
    """Of two students in the plane of two orthonormal teachers, even degree: the same for configurations that differ by
    order and signs of students or of teachers."""
    options = []
    for teachers in ((0, 1), (1, 0)):
        for students in ((0, 1), (1, 0)):
            moved = rows[list(students)][:, list(teachers)]
            for flip in (1.0, -1.0):  # signs of both students are free; of the teachers' signs the relative one is left
                turned = moved * np.array([1.0, flip])
                lead = np.where(np.abs(turned[:, :1]) > 1e-9, np.sign(turned[:, :1]), np.sign(turned[:, 1:]))
                options.append(tuple(np.round(turned * lead, 7).ravel() + 0.0))
    return max(options)
