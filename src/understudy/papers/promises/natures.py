"""Functions whose nature at a point is known by algebra, drawn by a generator with a fixed seed.

Each is written in coordinates y in which its nature is plain, and then seen in random coordinates x; see
`plain_functions`. What is drawn: the number of variables, signs, sizes and orders of terms, the coordinates. What
follows from them is the nature.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from understudy.papers.promises.plain_functions import PLATEAUS, Plateau, coordinates, polynomial
from understudy.tasks.task import Task

Terms = list[tuple[float, tuple[int, ...]]]


@dataclass(frozen=True)
class Known:
    """A point of a task with its nature: `minimum`, `strict saddle`, `non-strict saddle`, `not critical` or `not a
    minimum`.

    `regular`: critical to rounding and non-degenerate at its own scale, so that a verdict can be expected; `flat`: the
    dimension of the set of equally good points, where it is known and the point is a minimum.
    """

    kind: str
    words: str
    task: Task
    point: Any
    nature: str
    regular: bool = False
    flat: int | None = None


def _one(n: int, i: int, power: int) -> tuple[int, ...]:
    return tuple(power if j == i else 0 for j in range(n))


def _bowl(n: int, first: int, rng: np.random.Generator) -> Terms:
    """½ λ_i y_i² with λ_i between 0.1 and 10 for the variables from `first` on."""
    return [(10 ** rng.uniform(-1, 1) / 2, _one(n, i, 2)) for i in range(first, n)]


def _sign(rng: np.random.Generator) -> float:
    return float(rng.choice([-1.0, 1.0]))


def quadratic_forms(rng: np.random.Generator) -> tuple[int, Terms, str, bool]:
    """Eigenvalues between 1e-4 and 10 of random signs, and cubic and quartic terms."""
    n = int(rng.integers(1, 7))
    signs = np.ones(n) if rng.random() < 0.5 else rng.choice([-1.0, 1.0], size=n)
    terms: Terms = [(s * 10 ** rng.uniform(-4, 1) / 2, _one(n, i, 2)) for i, s in enumerate(signs)]
    for _ in range(4):
        powers = [0] * n
        for i in rng.integers(n, size=int(rng.integers(3, 5))):
            powers[i] += 1
        terms.append((rng.normal(), tuple(powers)))
    return n, terms, "minimum" if np.all(signs > 0) else "strict saddle", True


def single_powers(rng: np.random.Generator) -> tuple[int, Terms, str, bool]:
    """± c y^m, m from 3 to 16, beside a bowl."""
    n, m = int(rng.integers(1, 7)), int(rng.integers(3, 17))
    c = _sign(rng) * 10 ** rng.uniform(-2, 2)
    return n, [(c, _one(n, 0, m)), *_bowl(n, 1, rng)], "minimum" if c > 0 and m % 2 == 0 else "non-strict saddle", False


def forms_in_two(rng: np.random.Generator) -> tuple[int, Terms, str, bool]:
    """Quartic, cubic and mixed forms of two variables, beside a bowl; some fall along curves only."""
    n = int(rng.integers(2, 7))
    c = 10 ** rng.uniform(-1, 1)
    t = float(rng.choice([rng.uniform(0.0, 1.9), rng.uniform(2.1, 4.0)]))
    u = float(rng.uniform(1.2, 5.0))
    options: list[tuple[Terms, str]] = [
        ([(c, (4, 0)), (c, (0, 4)), (-t * c, (2, 2))], "minimum" if t < 2 else "non-strict saddle"),
        ([(c, (3, 0)), (-3 * c, (1, 2))], "non-strict saddle"),
        ([(c, (4, 0)), (2 * c, (2, 2)), (c, (0, 4))], "minimum"),
        # (y - z²)(y - u z²): falls between the two parabolas and along no straight line.
        ([(c, (2, 0)), (-(1 + u) * c, (1, 2)), (u * c, (0, 4))], "non-strict saddle"),
        ([(c, (2, 0)), (-2 * c, (1, 2)), (u * c, (0, 4))], "minimum"),
        ([(c, (6, 0)), (c, (0, 4))], "minimum"),
        ([(c, (4, 0)), (-c, (0, 6))], "non-strict saddle"),
        ([(c, (2, 1)), (c, (0, 4))], "non-strict saddle"),
    ]
    terms, nature = options[int(rng.integers(len(options)))]
    return n, [*terms, *_bowl(n, 2, rng)], nature, False


def hidden_falls(rng: np.random.Generator) -> tuple[int, Terms, str, bool]:
    """-c y^m + C y^M, m < M: a small term decides close by and a larger one of higher order hides it."""
    n = int(rng.integers(1, 7))
    m = int(rng.integers(2, 5))
    high = int(rng.integers(m + 1, 9))
    c = 10 ** rng.uniform(-14, -8) if m == 2 else 10 ** rng.uniform(-5, -1)
    terms = [(-c, _one(n, 0, m)), (_sign(rng) * 10 ** rng.uniform(-1, 1), _one(n, 0, high)), *_bowl(n, 1, rng)]
    return n, terms, "strict saddle" if m == 2 else "non-strict saddle", False


def hidden_rises(rng: np.random.Generator) -> tuple[int, Terms, str, bool]:
    """c y^m - C y^M, m even: a narrow minimum with a way down at some distance."""
    n = int(rng.integers(1, 7))
    m = int(rng.choice([2, 4]))
    high = int(rng.integers(m + 1, 9))
    c = 10 ** rng.uniform(-8, -2) if m == 2 else 10 ** rng.uniform(-1, 1)
    big = 10 ** rng.uniform(-1, 1) if m == 2 else 10 ** rng.uniform(1, 4)
    return n, [(c, _one(n, 0, m)), (-big, _one(n, 0, high)), *_bowl(n, 1, rng)], "minimum", False


def at_thresholds(rng: np.random.Generator) -> tuple[int, Terms, str, bool]:
    """Curvatures between 1e-15 and 1e-9 of either sign, next to a fold (y³) or a pitchfork (y⁴)."""
    n = int(rng.integers(1, 7))
    curvature = _sign(rng) * 10 ** rng.uniform(-15, -9)
    power, c = int(rng.choice([3, 4])), _sign(rng) * 10 ** rng.uniform(-1, 1)
    terms = [(curvature / 2, _one(n, 0, 2)), (c, _one(n, 0, power)), *_bowl(n, 1, rng)]
    return n, terms, "minimum" if curvature > 0 else "strict saddle", False


def flat_families(rng: np.random.Generator) -> tuple[int, Terms, str, bool, int]:
    """Functions that are constant along curves or surfaces through the point; the last number is their dimension."""
    n = int(rng.integers(3, 7))
    c = 10 ** rng.uniform(-1, 1)
    options: list[tuple[Terms, str, int]] = [
        ([], "minimum", 2),
        ([(c, (2, 0)), (-2 * c, (1, 2)), (c, (0, 4))], "minimum", 1),  # (y - z²)²
        ([(c, (4, 0))], "minimum", 1),
        ([(c, (2, 2))], "minimum", -1),  # two flat sets that cross
        ([(-c, (2, 0))], "strict saddle", 0),
        ([(-c, (2, 2))], "non-strict saddle", 0),
        ([(c, (3, 0))], "non-strict saddle", 0),
    ]
    terms, nature, flat = options[int(rng.integers(len(options)))]
    return n, [*terms, *_bowl(n, 2, rng)], nature, False, flat


def named() -> Iterator[tuple[str, int, Terms, str]]:
    """The examples that certificates have been wrong about."""
    yield "x² - 0.01 y³ + y⁴", 2, [(-0.01, (3, 0)), (1.0, (4, 0)), (1.0, (0, 2))], "non-strict saddle"
    for curvature in (1e-8, 1e-11, 1e-13, 1e-14):
        yield f"x² - {curvature:.0e} y² + y⁴", 2, [(-curvature, (2, 0)), (1.0, (4, 0)), (1.0, (0, 2))], "strict saddle"
        yield f"{curvature:.0e} y² - y³ + x²", 2, [(curvature, (2, 0)), (-1.0, (3, 0)), (1.0, (0, 2))], "minimum"
    yield "y⁴ - 10⁴ y⁶", 1, [(1.0, (4,)), (-1e4, (6,))], "minimum"
    for power in (8, 10, 12, 14, 16):
        yield f"x² - y^{power}", 2, [(-1.0, (power, 0)), (1.0, (0, 2))], "non-strict saddle"
        yield f"x² + y^{power}", 2, [(1.0, (power, 0)), (1.0, (0, 2))], "minimum"


FAMILIES: dict[str, Callable[[np.random.Generator], tuple]] = {
    "quadratic forms": quadratic_forms,
    "single powers": single_powers,
    "forms in two variables": forms_in_two,
    "hidden falls": hidden_falls,
    "hidden rises": hidden_rises,
    "curvatures at the threshold": at_thresholds,
    "flat families": flat_families,
}


def functions(seed: int, each: int) -> Iterator[Known]:
    """`each` functions of every family, the named ones, as many plateaus, and some of every family in other units."""
    rng = np.random.default_rng([seed, 1])
    for words, n, terms, nature in named():
        for at_zero in (True, False):
            place = coordinates(rng, n, bent=not at_zero, at_zero=at_zero)
            yield Known("named functions", words, polynomial(terms, **place), np.asarray(place["center"]), nature)
    for kind, draw in FAMILIES.items():
        for _ in range(each):
            yield _placed(kind, draw, rng, 1.0, 1.0)
        for _ in range(max(1, each // 4)):
            unit, length = 10.0 ** rng.integers(-9, 10, size=2)
            yield _placed(kind, draw, rng, float(unit), float(length), ", other units")
    yield from _plateaus(rng, each)


def _placed(
    kind: str,
    draw: Callable[[np.random.Generator], tuple],
    rng: np.random.Generator,
    unit: float,
    length: float,
    tail: str = "",
) -> Known:
    n, terms, nature, regular, *flat = draw(rng)
    place = coordinates(
        rng, n, bent=bool(rng.random() < 0.7), at_zero=bool(rng.random() < 0.3) and not tail, unit=unit, length=length
    )
    known = flat[0] if flat and flat[0] >= 0 and nature == "minimum" else None
    words = " + ".join(f"{c:.2g} y^{e}" for c, e in terms)
    task = polynomial(terms, **place)
    return Known(kind + tail, words, task, np.asarray(place["center"]), nature, regular, known)


def _plateaus(rng: np.random.Generator, each: int) -> Iterator[Known]:
    for _ in range(2 * each):
        which, n = int(rng.integers(len(PLATEAUS))), int(rng.integers(1, 4))
        quick = PLATEAUS[which] in ("exp(-y²)", "exp(-y)", "log(1 + exp(-y))", "-tanh(y)")
        far = float(rng.uniform(25, 45)) if quick else 10 ** rng.uniform(2, 9)
        place = coordinates(rng, n, bent=False, at_zero=True)
        constant = float(rng.choice([0.0, 1.0, -3.0]))
        task = Plateau(**place, far=jnp.asarray(0.0), constant=jnp.asarray(constant), which=which)
        point = far * np.asarray(place["matrix"])[0]
        words = f"{PLATEAUS[which]} at {far:.3g}, constant {constant:g}"
        yield Known("far plateaus", words, task, point, "not critical")
