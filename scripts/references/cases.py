"""Every pair at every point, by the route that fits it, and the file they are written to."""

import json
import time
from concurrent.futures import ProcessPoolExecutor

from mpmath import mp, mpf

from scripts.references.activations import find_smoothing, list_coefficients
from scripts.references.lattice import integrate_lattice
from scripts.references.line import integrate_kinked, integrate_line
from scripts.references.moments import integrate_moments
from scripts.references.quantities import (
    DIGITS,
    KINK,
    PAIRS,
    PATH,
    QUANTITIES,
    SINGLES,
    STEP,
    TOLERANCE,
    WORKING_DIGITS,
    Table,
    list_points,
)


def integrate(first: str, second: str, point: tuple[float, float, float], fineness: float = 1) -> tuple[Table, mpf]:
    """E[s₁ᵃ s₂ᵇ] for all orders by the route that fits the pair, and the convergence residual."""
    r1, r2, u = map(mpf, point)
    if list_coefficients(first) and list_coefficients(second):
        return integrate_moments(first, second, *point), mpf(0)
    if second in KINK:
        return integrate_kinked(first, second, r1, r2, u, STEP / fineness)
    if find_smoothing(first):
        return integrate_line(first, second, r1, r2, u, STEP / fineness)
    if first == second:
        return integrate_lattice(first, r1, r2, u, fineness)
    if (first, second) == ("tanh", "softplus"):  # softplus is y/2 + an even function, which tanh does not see
        table, residual = integrate_line("linear", "tanh", r2, r1, u, STEP / fineness)
        return {(b, a): number / 2 for (a, b), number in table.items()}, residual
    table, residual = integrate_line(second, first, r2, r1, u, STEP / fineness)
    return {(b, a): number for (a, b), number in table.items()}, residual


def compute_quantities(
    first: str, second: str, point: tuple[float, float, float], fineness: float = 1
) -> tuple[dict[str, mpf | None], mpf]:
    """The value and the derivatives in the covariance at one point, and the convergence residual."""
    with mp.workdps(WORKING_DIGITS):
        table, residual = integrate(first, second, point, fineness)
        if residual > TOLERANCE:
            raise ArithmeticError(
                f"({first}, {second}) at (r1, r2, u) = {point} has converged to {mp.nstr(residual, 3)} only, "
                f"not to {mp.nstr(TOLERANCE, 3)}; take a smaller STEP or a longer period"
            )
        numbers = {}
        for name, (a, b, factor) in QUANTITIES.items():
            number = table[a, b]
            numbers[name] = None if number is None else number * factor.numerator / factor.denominator
    return numbers, residual


def compute_case(pair: tuple[str, str]) -> tuple[dict, mpf, float]:
    """All points of one pair as they are stored, the worst residual, and the seconds it took."""
    begin, worst, points = time.perf_counter(), mpf(0), []
    for r1, r2, u in list_points():
        numbers, residual = compute_quantities(*pair, (r1, r2, u))
        worst = max(worst, residual)
        strings = {name: None if x is None else mp.nstr(x, DIGITS) for name, x in numbers.items()}
        points.append({"r1": r1, "r2": r2, "u": u, **strings})
    case = {"activation": pair[0], "activation2": pair[1], "points": points}
    return case, worst, time.perf_counter() - begin


def format_file(cases: list[dict]) -> str:
    """The JSON text with one point a line."""
    blocks = []
    for case in cases:
        head = ", ".join(f"{json.dumps(key)}: {json.dumps(case[key])}" for key in ("activation", "activation2"))
        lines = ",\n   ".join(json.dumps(point) for point in case["points"])
        blocks.append(f'  {{{head}, "points": [\n   {lines}]}}')
    return f'{{"digits": {DIGITS}, "cases": [\n' + ",\n".join(blocks) + "]}\n"


def generate(workers: int, only: str | None) -> None:
    """Compute all pairs, or those in which `only` occurs, and write the file (the others are kept)."""
    begin, worst = time.perf_counter(), mpf(0)
    pairs = [pair for pair in PAIRS if only is None or only in pair]
    if not pairs:
        raise SystemExit(f"no pair contains {only!r}; the activations are {', '.join(SINGLES)}")
    cases = {}
    PATH.parent.mkdir(parents=True, exist_ok=True)
    if only is not None and PATH.exists():
        stored = json.loads(PATH.read_text())["cases"]
        cases = {(case["activation"], case["activation2"]): case for case in stored}
    pool = ProcessPoolExecutor(workers) if workers > 1 else None
    for pair, (case, residual, seconds) in zip(pairs, (pool.map if pool else map)(compute_case, pairs), strict=True):
        cases[pair] = case
        PATH.write_text(format_file([cases[known] for known in PAIRS if known in cases]))
        worst = max(worst, residual)
        nulls = sum(x is None for point in case["points"] for x in point.values())
        print(
            f"{', '.join(dict.fromkeys(pair)):24s} {len(case['points'])} points, {nulls:3d} null, "
            f"residual {mp.nstr(residual, 2):>8s}, {seconds:6.1f} s",
            flush=True,
        )
    if pool:
        pool.shutdown()
    print(f"wrote {PATH}; worst residual {mp.nstr(worst, 2)}; {time.perf_counter() - begin:.0f} s")
