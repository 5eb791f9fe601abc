"""Checks the theorem of a proof file from its numbers alone, or says why it does not hold."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import arb, arb_mat, ctx

from understudy.proofs.checker.biased_energy import Neuron, biased_teachers_energy, neurons_energy
from understudy.proofs.checker.energy import Energy, energy, teachers_energy
from understudy.proofs.checker.interactions import Refused
from understudy.proofs.checker.jets import Ball
from understudy.proofs.checker.linear import bumped, invertible, newton_step, signs

BITS = 224
RESCALED = {"relu": 1, "abs": 1, "linear": 1, "quadratic": 2, "hermite:1": 1}
"""σ(c x) = c^p σ(x) for c > 0."""


def check(content: dict[str, Any]) -> None:
    """Raise `Refused` unless existence, uniqueness, inertia, kind and loss are as the content says."""
    with ctx.workprec(BITS):
        _Checker(content).run()


class _Checker:
    def __init__(self, content: dict[str, Any]):
        self.content, self.problem = content, content["problem"]
        self.frame, self.shares = content["frame"], content["shares"]
        k, d = len(self.problem["teacher_incoming"]), len(self.problem["teacher_incoming"][0])
        self.rank, self.extra, self.outside = (self.frame[key] for key in ("rank", "extra", "outside"))
        if min(self.rank, self.extra, self.outside) < 0 or self.rank + self.extra + self.outside != d:
            raise Refused(f"the frame has {self.rank} + {self.extra} + {self.outside} directions of {d}")
        if len(self.problem["teacher_outgoing"]) != k:
            raise Refused("the teacher's incoming and outgoing weights do not match")
        self.dim = self.rank + self.extra
        self.wide = self.dim + (self.outside > 0)
        # Add a coordinate that is zero for every neuron. Its block of the Hessian is that of every direction outside.
        rows = _teachers(_seen(self.problem), self.frame)
        self.teachers = [_column([*row, *[arb(0)] * (self.wide - self.rank)]) for row in rows]
        fixed = self.problem["fixed_outgoing"]
        self.trained = 0 if fixed is not None else len(self.problem["teacher_outgoing"][0])
        self.width = self.problem["width"] if self.shares is None else max(self.shares["neuron"]) + 1
        self._read_biases(k, d)
        self.step = self.dim + self.bias + self.trained
        center = content["center"]
        lengths = [self.step] * self.width + ([self.offsets] if self.offsets else [])
        if [len(row) for row in center] != lengths:
            raise Refused("the center's shape does not fit the problem")
        if self.problem["loss"] == "sphere" and fixed != [[1.0]] * self.width:
            raise Refused("on the sphere every outgoing weight is 1")
        if self.problem["loss"] != "sphere" and (self.problem["repulsion"] != 1 or not self.problem["with_constant"]):
            raise Refused("a population loss has no factor on its repulsion, and its constant")
        self.center = [_exact(x) for row in center for x in row]
        self.unit, self.outgoing_unit = (_exact(content["units"][key]) for key in ("incoming", "outgoing"))
        if not (self.unit > 0 and self.outgoing_unit > 0):
            raise Refused("units are positive numbers")
        self.radius, self.error = _exact(content["radius"]), _exact(content["error"])

    def _read_biases(self, k: int, d: int) -> None:
        """Whether biases are trained, and with them an offset; the teachers' biases for inputs of mean zero."""
        given = self.problem.get("biases")
        self.bias, self.offsets, self.fixed_bias = 0, 0, None
        self.biased = given is not None
        if given is None:
            return
        outputs = len(self.problem["teacher_outgoing"][0])
        if not isinstance(given["trained"], bool) or (given["trained"] and given["fixed"] is not None):
            raise Refused("biases are trained, fixed or absent")
        if given["mean"] is not None and not given["trained"]:
            raise Refused("inputs have a mean only where biases are trained")
        lengths = {"fixed": self.problem["width"], "teacher": k, "teacher_offset": outputs, "mean": d}
        if any(given[name] is not None and len(given[name]) != length for name, length in lengths.items()):
            raise Refused("biases, offset or mean do not fit the problem")
        if self.problem["loss"] != "population" or (given["fixed"] is not None and self.shares is not None):
            raise Refused("no formula with biases for this problem")
        if given["trained"]:
            self.bias, self.offsets = 1, outputs
        self.fixed_bias = given["fixed"]
        self.target_offset = [arb(float(x)) for x in given["teacher_offset"] or [0.0] * outputs]
        means = [arb(float(c)) for c in given["teacher"] or [0.0] * k]
        for j, row in enumerate(self.problem["teacher_incoming"] if given["mean"] is not None else []):
            means[j] += _dots([arb(float(x)) for x in row], [arb(float(x)) for x in given["mean"]])
        weights = [[-arb(float(b)) for b in row] for row in self.problem["teacher_outgoing"]]
        name = self.problem["teacher_activation"]
        self.teacher_neurons = [Neuron(name, *rest) for rest in zip(self.teachers, means, weights, strict=True)]

    def run(self) -> None:
        if not (self.radius > self.error and self.error >= 0):
            raise Refused("the error is not below the radius")
        loss = self._zero()
        inertia = self._inertia()
        claimed = tuple(self.content["inertia"][key] for key in ("negative", "zero", "positive"))
        if inertia != claimed:
            raise Refused(f"the inertia is {inertia}, and the file says {claimed}")
        kind = "strict saddle" if inertia[2] else "strict maximum"
        if inertia[0] == 0:
            kind = "strict minimum" if self.shares is None else "minimum"
        if kind != self.content["kind"]:
            raise Refused(f"the point is a {kind}, and the file says {self.content['kind']!r}")
        low, high = (_exact(self.content["loss"][key]) for key in ("lower", "upper"))
        if not (loss >= low and loss <= high):
            raise Refused("the loss is not shown to be between the bounds")

    def _energy(self, x: list[Ball]) -> Energy:
        """The energy at numbers in the file's units, and its derivatives by them.

        The further coordinate has the same unit as the others.
        """
        rows = [x[i : i + self.step] for i in range(0, len(x) - self.offsets, self.step)]
        students = [[*(w * self.unit for w in row[: self.dim]), *[arb(0)] * (self.wide - self.dim)] for row in rows]
        fixed = self.problem["fixed_outgoing"]
        weights = [[a * self.outgoing_unit for a in row[self.dim + self.bias :]] for row in rows]
        if fixed is not None:
            weights = [[arb(a) for a in row] for row in fixed]
        columns = [_column(s) for s in students]
        if self.biased:
            found = self._biased_energy(x, rows, columns, weights)
        else:
            found = energy(self.problem, self.teachers, columns, weights)
        units = ([self.unit] * (self.wide + self.bias) + [self.outgoing_unit] * self.trained) * len(rows)
        units += [self.outgoing_unit] * self.offsets
        gradient = [g * u for g, u in zip(found.gradient, units, strict=True)]
        hessian = [
            [h * u * v for h, v in zip(row, units, strict=True)] for row, u in zip(found.hessian, units, strict=True)
        ]
        return Energy(found.loss, gradient, hessian)

    def _biased_energy(
        self, x: list[Ball], rows: list[list[Ball]], columns: list[Any], weights: list[list[Ball]]
    ) -> Energy:
        step = self.wide + self.bias + self.trained
        size = len(rows) * step + self.offsets
        students = []
        for i, (row, column, a) in enumerate(zip(rows, columns, weights, strict=True)):
            fixed = arb(0) if self.fixed_bias is None else arb(float(self.fixed_bias[i]))
            mean = row[self.dim] * self.unit if self.bias else fixed
            out = i * step + self.wide + self.bias if self.trained else None
            students.append(Neuron(self.problem["activation"], column, mean, a, i * step, out))
        given = [c * self.outgoing_unit for c in x[len(x) - self.offsets :]] if self.offsets else []
        count = len(self.target_offset)
        weight = [c - t for c, t in zip(given or [arb(0)] * count, self.target_offset, strict=True)]
        offset = Neuron(None, _column([arb(0)] * self.wide), arb(0), weight, None, size - count if given else None)
        return neurons_energy(students, self.teacher_neurons, offset, size, self.wide + self.bias)

    def _zero(self) -> Ball:
        """One zero of ∇L across the symmetries in the box, within the error; returns its loss."""
        box = [c + arb(0, self.radius.abs_upper()) for c in self.center]
        base = self._symmetries(self.center)
        _independent(base, self._symmetries(box))
        self.over = self._energy(box)
        jacobian = bumped(self._inside(self.over), base)
        here = self._energy(self.center)
        step = newton_step(jacobian, self._keep(here.gradient))
        if step is None or not all(abs(s) < self.error for s in step):
            raise Refused("no critical point is shown to be within the error, and alone within the radius")
        return self._loss_near(here)

    def _loss_near(self, here: Energy) -> Ball:
        """The loss within the error of the center: the mean value theorem twice, with the Hessian of the whole box."""
        constant = biased_teachers_energy(self.teacher_neurons) if self.biased else None
        e, total = self.error, here.loss + (constant or teachers_energy(self.problem, self.teachers))
        for i, row in enumerate(self.over.hessian):
            slope = here.gradient[i] + sum((h * arb(0, e.abs_upper()) for h in row), arb(0))
            total += slope * arb(0, e.abs_upper())
        return total

    def _symmetries(self, x: list[Ball]) -> list[list[Ball]]:
        """Directions of rescalings and of rotations beyond the teachers' span."""
        step, sphere = self.step, self.problem["loss"] == "sphere"
        degree, found = RESCALED.get(self.problem["activation"]) if self.fixed_bias is None else None, []
        students = (len(x) - self.offsets) // step
        if sphere or (self.trained and degree is not None):
            for i in range(students):
                t = [arb(0)] * len(x)
                for c in range(step):
                    t[i * step + c] = x[i * step + c] * (1 if c < self.dim + self.bias else -int(degree or 0))
                found.append(t)
        for b in range(self.rank, self.dim):
            for a in range(self.rank, b):
                t = [arb(0)] * len(x)
                for i in range(students):
                    t[i * step + a], t[i * step + b] = x[i * step + b], -x[i * step + a]
                found.append(t)
        return found

    def _inertia(self) -> tuple[int, int, int]:
        box = [c + arb(0, self.radius.abs_upper()) for c in self.center]
        center, flat = self.center, []
        if self.shares is not None:
            box, center, flat = self._spread(box), self._spread(self.center), self._flat()
        here = self.over if self.shares is None else self._energy(box)
        known = [*self._symmetries(center), *flat]
        _independent(known, [*self._symmetries(box), *flat])
        inside = signs(bumped(self._inside(here), known))
        across: tuple[int, int] | None = (0, 0)
        if self.outside:
            beyond = self._beyond(center)
            _independent(beyond, self._beyond(box))
            across = signs(bumped(self._across(here), beyond))
        if inside is None or across is None:
            raise Refused("an eigenvalue of the Hessian cannot be told from zero")
        radial = self.problem["width"] if self.problem["loss"] == "sphere" else 0
        return (
            inside[0] + self.outside * across[0],
            len(known) - radial + self.outside * self.extra,
            inside[1] - len(known) + self.outside * (across[1] - self.extra),
        )

    def _beyond(self, x: list[Ball]) -> list[list[Ball]]:
        """For each coordinate beyond the teachers' span, its values for all students.

        A rotation out of the frame moves along them.
        """
        return [x[c : len(x) - self.offsets : self.step] for c in range(self.rank, self.dim)]

    def _spread(self, x: list[Ball]) -> list[Ball]:
        """The parameters of all students from those of the merged ones."""
        self._check_shares()
        step, result = self.step, []
        for neuron, sign, share in zip(*(self.shares[key] for key in ("neuron", "sign", "share")), strict=True):
            row = x[neuron * step : (neuron + 1) * step]
            parity = self._parity() if sign < 0 else 1
            result += [sign * w for w in row[:-1]] + [row[-1] * _exact(share) * parity]
        return result + x[self.width * step :]

    def _flat(self) -> list[list[Ball]]:
        step, found, neurons = self.step, [], self.shares["neuron"]
        for i, neuron in enumerate(neurons):
            first = neurons.index(neuron)
            if first < i:
                t = [arb(0)] * (len(neurons) * step + self.offsets)
                for member, direction in ((i, 1), (first, -1)):
                    flipped = self.shares["sign"][member] < 0
                    t[member * step + step - 1] = arb(direction * (self._parity() if flipped else 1))
                found.append(t)
        return found

    def _check_shares(self) -> None:
        neurons, share = self.shares["neuron"], [Fraction(s) for s in self.shares["share"]]
        lengths = {len(self.shares[key]) for key in ("neuron", "sign", "share")}
        if lengths != {self.problem["width"]} or self.trained != 1 or set(neurons) != set(range(self.width)):
            raise Refused("the shares do not fit the problem")
        if any(sum(s for s, c in zip(share, neurons, strict=True) if c == neuron) != 1 for neuron in set(neurons)):
            raise Refused("the shares of a neuron do not sum to 1")
        if any(s not in (1, -1) for s in self.shares["sign"]) or (-1 in self.shares["sign"] and not self._parity()):
            raise Refused("the signs of shares do not fit the activation")

    def _parity(self) -> int:
        kind, _, degree = self.problem["activation"].partition(":")
        if kind == "hermite":
            return -1 if int(degree) % 2 else 1
        return {"erf": -1, "tanh": -1, "linear": -1, "abs": 1, "quadratic": 1}.get(kind, 0)

    def _keep(self, row: list[Ball]) -> list[Ball]:
        """Drop the further coordinate of each student."""
        step, end = self.wide + self.bias + self.trained, len(row) - self.offsets
        return [x for i, x in enumerate(row) if i >= end or i % step < self.dim or i % step >= self.wide]

    def _inside(self, here: Energy) -> Any:
        return arb_mat(self._keep([self._keep(row) for row in here.hessian]))

    def _across(self, here: Energy) -> Any:
        at = range(self.dim, len(here.gradient) - self.offsets, self.wide + self.bias + self.trained)
        return arb_mat([[here.hessian[i][j] for j in at] for i in at])


def _seen(problem: dict[str, Any]) -> list[list[Fraction]]:
    """The teachers' vectors for inputs with covariance I: v R, where R is the root of the covariance."""
    rows = [[Fraction(x) for x in row] for row in problem["teacher_incoming"]]
    if problem.get("root") is None:
        return rows
    root, d = [[Fraction(x) for x in row] for row in problem["root"]], len(rows[0])
    if problem["loss"] != "population" or [len(row) for row in root] != [d] * d or _rank(root) != d:
        raise Refused("the root of the covariance has no inverse, or does not fit the problem")
    return [
        [sum((x * line[c] for x, line in zip(row, root, strict=True)), Fraction(0)) for c in range(d)] for row in rows
    ]


def _teachers(rows: list[list[Fraction]], frame: dict[str, Any]) -> list[list[Ball]]:
    """The teachers' coordinates in the frame's basis of their span."""
    if frame["basis"] == "coordinates":
        used = [c for c in range(len(rows[0])) if any(row[c] for row in rows)]
        if len(used) != frame["rank"]:
            raise Refused(f"teachers use {len(used)} coordinates, and the file says {frame['rank']}")
        return [[_exact(row[c]) for c in used] for row in rows]
    if frame["basis"] != "gram-schmidt":
        raise Refused(f"unknown basis {frame['basis']!r}")
    basis: list[list[Ball]] = []
    for position, row in enumerate(rows):
        if _rank(rows[: position + 1]) > len(basis):
            rest = [_exact(x) for x in row]
            for b in basis:
                along = _dots(rest, b)
                rest = [x - along * y for x, y in zip(rest, b, strict=True)]
            length = _dots(rest, rest).sqrt()
            basis.append([x / length for x in rest])
    if len(basis) != frame["rank"]:
        raise Refused(f"the teachers span {len(basis)} dimensions, and the file says {frame['rank']}")
    return [[_dots([_exact(x) for x in row], b) for b in basis] for row in rows]


def _rank(rows: list[list[Fraction]]) -> int:
    rows, rank = [list(row) for row in rows], 0
    for c in range(len(rows[0])):
        pivot = next((r for r in range(rank, len(rows)) if rows[r][c]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for r in range(rank + 1, len(rows)):
            factor = rows[r][c] / rows[rank][c]
            rows[r] = [x - factor * y for x, y in zip(rows[r], rows[rank], strict=True)]
        rank += 1
    return rank


def _independent(base: list[list[Ball]], moved: list[list[Ball]]) -> None:
    """Refuse unless both families are independent, by the invertibility of their inner products."""
    if base and not invertible(arb_mat([[_dots(s, t) for t in base] for s in moved])):
        raise Refused("directions of symmetries or shares are not independent")


def _exact(number: str | Fraction) -> Ball:
    """A decimal or fraction as a ball."""
    value = Fraction(number)
    return arb(value.numerator) / value.denominator


def _dots(a: list[Ball], b: list[Ball]) -> Ball:
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))


def _column(entries: list[Ball]) -> Any:
    return arb_mat(len(entries), 1, entries)
