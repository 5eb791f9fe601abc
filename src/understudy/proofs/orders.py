"""Relations between proved points: which loss is lower, and which points are the same up to symmetry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, permutations, product

import numpy as np

from understudy.proofs.named import parity_of
from understudy.proofs.proof import Proof
from understudy.tasks.exact_form import ExactForm


@dataclass(frozen=True)
class Relation:
    """Whether the relation was proved (`holds`), with its statement or the reason why not."""

    holds: bool
    statement: str

    def __str__(self) -> str:
        return self.statement


def compare(first: Proof, second: Proof) -> Relation:
    """Prove that the first point's loss is strictly below the second's, which must be of the same problem.

    The numbers of students may differ, because both losses belong to one teacher. The gap in the statement is a lower
    bound.
    """
    _check_same_teacher(first.form, second.form)
    gap = Fraction(second.lower) - Fraction(first.upper)
    if gap > 0:
        return Relation(
            True, f"The loss of the first point, at most {first.upper}, is strictly below that of the second, by more "
            f"than {_below(gap)}.",
        )  # fmt: skip
    if Fraction(first.lower) > Fraction(second.upper):
        return Relation(False, "The loss of the first point is strictly above that of the second.")
    return Relation(False, "Not proved: the enclosures of the two losses overlap.")


def same(first: Proof, second: Proof) -> Relation:
    """Prove that two critical points are the same up to the discrete symmetries of the problem.

    These are permutations of students, signs of students (odd and even activations) and, for teachers along axes with
    equal weights, permutations of teachers. Such a map must move the second center so close to the first that the
    second exact point lies in the box in which the first is the only one. Points with continuous symmetries are not
    compared.
    """
    _check_same_teacher(first.form, second.form)
    if first.form.biased:
        return Relation(False, "Not proved: points of networks with biases are not compared.")
    for proof in (first, second):
        if proof.zeros or proof.shares or proof.frame.extra or proof.form.loss == "sphere":
            return Relation(False, "Not proved: points with continuous symmetries are not compared.")
    if first.form.width != second.form.width or (first.form.fixed_outgoing is None) != (
        second.form.fixed_outgoing is None
    ):
        return Relation(False, "Not proved: the points have different parameters.")
    if first.units != second.units:
        return Relation(False, "Not proved: the proofs are in different units.")
    if first.form.fixed_outgoing is not None:
        return Relation(False, "Not proved: students with fixed outgoing weights are not permuted.")
    room = Fraction(first.radius) - Fraction(second.error)
    target, rows = _signed(first), _signed(second)
    for image in _permuted(target, rows, first.frame.dim, _along_axes(first.form)):
        if all(abs(a - b) <= room for row, other in zip(target, image, strict=True)
               for a, b in zip(row, other, strict=True)):  # fmt: skip
            return Relation(True, "The two critical points are one up to permutations and signs of neurons.")
    return Relation(False, "Not proved: no permutation and signs of neurons map one point to the other.")


def _check_same_teacher(first: ExactForm, second: ExactForm) -> None:
    for name in ("loss", "activation", "teacher_activation", "incoming", "outgoing", "repulsion", "with_constant",
                 "teacher_bias", "teacher_offset", "mean"):  # fmt: skip
        if not np.array_equal(getattr(first, name), getattr(second, name)):
            raise ValueError(f"Compare points of one problem: the two proofs differ in {name}.")


def _signed(proof: Proof) -> list[list[Fraction]]:
    """The center, with signs of students fixed.

    Outgoing weights are positive for odd activations; sums of incoming weights are positive for even ones.
    """
    rows, dim = [[Fraction(x) for x in row] for row in proof.center], proof.frame.dim
    parity = parity_of(proof.form.activation)
    for row in rows:
        if parity and (row[dim] if parity == -1 else sum(row[:dim])) < 0:
            row[:dim] = [-x for x in row[:dim]]
            if parity == -1:
                row[dim:] = [-x for x in row[dim:]]
    return rows


def _permuted(
    wanted_rows: list[list[Fraction]], rows: list[list[Fraction]], dim: int, axes: bool
) -> Iterator[list[list[Fraction]]]:
    """The orders of rows, and with `axes` of columns of incoming weights, that match those wanted to eight digits."""
    target, values = np.array(wanted_rows, float), np.array(rows, float)
    wanted, found = _keys(target, dim, axes), _keys(values, dim, axes)
    if sorted(wanted) != sorted(found):
        return
    columns = list(range(target.shape[1]))
    by_key = {key: [i for i in range(len(rows)) if found[i] == key] for key in set(found)}
    orders = groupby(sorted(range(len(rows)), key=lambda i: wanted[i]), key=lambda i: wanted[i])
    places = [(list(group), by_key[key]) for key, group in orders]
    for chosen in product(*(permutations(candidates) for _, candidates in places)):
        order = [0] * len(rows)
        for (positions, _), candidates in zip(places, chosen, strict=True):
            for position, candidate in zip(positions, candidates, strict=True):
                order[position] = candidate
        moved = values[order]
        if axes:
            left, right = (np.lexsort(np.round(m[:, :dim], 8)) for m in (target, moved))
            back = np.empty(dim, int)
            back[left] = right
            columns = [*back, *range(dim, target.shape[1])]
        yield [[rows[i][c] for c in columns] for i in order]


def _keys(values: np.ndarray, dim: int, axes: bool) -> list[tuple[float, ...]]:
    """Numbers of a row that do not change under permutations of columns, to six digits."""
    incoming = np.sort(values[:, :dim], axis=1) if axes else values[:, :dim]
    return [tuple(row) for row in np.round(np.concatenate([incoming, values[:, dim:]], axis=1), 6) + 0.0]


def _along_axes(form: ExactForm) -> bool:
    """Whether permutations of coordinates permute equal teachers."""
    k, d = form.incoming.shape
    if form.root is not None:
        return False
    equal = np.all(form.outgoing == form.outgoing[0]) and np.array_equal(
        form.incoming, form.incoming[0, 0] * np.eye(k, d)
    )
    return bool(equal)


def _below(gap: Fraction) -> str:
    """Two digits, rounded down."""
    exponent = int(np.floor(np.log10(float(gap)))) - 1
    digits = int(gap / Fraction(10) ** exponent)
    return f"{digits // 10}.{digits % 10}e{exponent + 1}"
