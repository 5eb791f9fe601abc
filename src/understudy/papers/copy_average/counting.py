"""Claim `ca-count`: how many copy-average points there are."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from understudy.papers.check import equal
from understudy.papers.claim import Claim, Progress, Settings
from understudy.papers.measurement import Measurement

if TYPE_CHECKING:
    from understudy.networks import TwoLayer
    from understudy.theory.one_neuron import OneNeuron


def _printed(sizes: tuple[int, ...], k: int) -> int:
    """Eq. 67 and 68 as printed: the last binomial's upper entry is k - (ℓ_1 + … + ℓ_n)."""
    orders = math.factorial(len(sizes))
    for size in set(sizes):
        orders //= math.factorial(sizes.count(size))
    product, used = orders, 0
    for i, size in enumerate(sizes):
        last = i == len(sizes) - 1 and len(sizes) > 1
        product *= math.comb(k - sum(sizes) if last else k - used, size)
        used += size
    return product


def enumerate_points(activation: str, partition: Sequence[int], teachers: int) -> "Iterator[TwoLayer]":
    """Every copy-average point with these group sizes, one by one: all assignments of teachers to students, all signs.

    For small cases only: it goes through (n + 1)^k assignments.
    """
    import numpy as np

    from understudy import activations
    from understudy.theory import one_neuron
    from understudy.theory.copy_average import check_partition

    sizes, k = check_partition(partition, teachers)
    if (len(sizes) + 1) ** k > 10_000_000:
        raise ValueError(f"{len(sizes)} students and {k} teachers are too many to enumerate; use count.")
    signs = (1.0, -1.0) if activations.get(activation).parity == "odd" else (1.0,)
    best = {size: one_neuron(activation, size) for size in set(sizes)}
    for owner in np.ndindex(*[len(sizes) + 1] * k):
        groups = [[j for j in range(k) if owner[j] == i] for i in range(len(sizes))]
        if sorted(map(len, groups)) != sorted(sizes):
            continue
        for flips in np.ndindex(*[len(signs)] * len(sizes)):
            yield _assemble([best[len(group)] for group in groups], groups, [signs[f] for f in flips], k)


def _assemble(best: "list[OneNeuron]", groups: list[list[int]], signs: list[float], k: int) -> "TwoLayer":
    import jax.numpy as jnp
    import numpy as np

    from understudy.networks import TwoLayer

    incoming = np.zeros((len(groups), k))
    for i, (one, group, sign) in enumerate(zip(best, groups, signs, strict=True)):
        incoming[i, group] = sign * one.norm * one.correlation
    outgoing = [s * one.outgoing for s, one in zip(signs, best, strict=True)]
    return TwoLayer(jnp.asarray(incoming), jnp.asarray(outgoing))


def _measure(settings: Settings, progress: Progress) -> Measurement:
    import numpy as np

    from understudy.theory.copy_average import count, partitions

    cases, counted, formula, unsigned, printed = [], [], [], [], []
    grid = [(n, k) for n in range(1, settings["students"] + 1) for k in range(n, settings["teachers"] + 1)]
    for n, k in progress.over(grid, "(n, k) ="):
        totals = range(n, k + 1) if settings["incomplete"] else (k,)
        for sizes in (p for total in totals for p in partitions(total, n)):
            seen = set()
            for point in enumerate_points("erf", sizes, k):
                rows = np.concatenate([np.asarray(point.incoming), np.asarray(point.outgoing)[:, None]], axis=1)
                seen.add(rows.round(9).tobytes())
            cases.append((sizes, k))
            counted.append(len(seen))
            formula.append(count(sizes, k).total)
            unsigned.append(count(sizes, k, odd=False).total)
            printed.append(_printed(sizes, k))
    complete = [i for i, (sizes, k) in enumerate(cases) if sum(sizes) == k]
    several = [i for i in complete if len(cases[i][0]) > 1]
    checks = [
        equal("2^n · n!/Π c! · k!/(Π ℓ! (k-Σℓ)!) against enumeration", counted, formula),
        equal(
            "without signs it is smaller by 2^n",
            [c // 2 ** len(s) for c, (s, _) in zip(counted, cases, strict=True)],
            unsigned,
        ),
    ]
    note = (
        "The last binomial of Eq. 67 must be C(k - (ℓ_1 + … + ℓ_{n-1}), ℓ_n). As printed its upper entry contains ℓ_n "
        "too, "
        f"so that it is C(0, ℓ_n) = 0 for each of the {len(several)} complete partitions with n ≥ 2 looked at. With "
        "that repaired, Eq. "
        "67-68 count groups and orders right (c_i! in the denominator undoes the orders among equal sizes), but not "
        "the signs: "
        "an odd activation has 2^n times as many points, since (w, a) and (-w, -a) are different parameters."
    )
    example = {str(cases[i]): {"enumerated": counted[i], "as printed": printed[i]} for i in several[:6]}
    return Measurement(
        checks,
        {"partitions": len(cases), "examples": example},
        printed=[
            equal(
                "Eq. 67-68 as printed, complete partitions",
                [counted[i] for i in several],
                [printed[i] for i in several],
            )
        ],
        erratum_note=note,
    )


CLAIM = Claim(
    paper="copy-average",
    id="ca-count",
    where="App. E.1, Eq. 67-68",
    statement=(
        "The number of copy-average points with given group sizes is a product of binomials and a permutation factor."
    ),
    paper_value="n!/(c_1! … c_k!) · C(k, ℓ_1) … C(k-(ℓ_1+…+ℓ_n), ℓ_n)",
    measured_by=(
        "Enumeration of all assignments of teachers to students and all signs, counting distinct parameter vectors."
    ),
    tolerance="exact",
    tolerance_reason="Whole numbers.",
    quick={"students": 3, "teachers": 5, "incomplete": True},
    full={"students": 3, "teachers": 6, "incomplete": True},
    measure=_measure,
)
