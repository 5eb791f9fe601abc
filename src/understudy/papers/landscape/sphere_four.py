"""Claim `sphere-four`: the traps of `sphere-traps` with four students, and at the degrees 9 and 10."""

from understudy.papers.claim import Claim
from understudy.papers.landscape.sphere_traps import cost, draw, measure

CLAIM = Claim(
    paper="landscape",
    id="sphere-four",
    where="tight-balance, Section 3: n = k = 4 at ρ = 4 … 10, n = k = 2 and 3 at ρ = 9 and 10",
    statement="The structures that trap two and three students also trap four, beside new ones. Starts within 45° "
    "(even ρ) or 30° (all ρ) of the own teachers avoid them.",
    paper_value="global convergence is observed",
    measured_by="Runs of the flow from uniform starts and from starts in cones; explorations with Morse counts for two "
    "students.",
    tolerance="exact; losses to 1e-8",
    tolerance_reason="Every end is certified. The share of starts that end at minima which no run has met is about "
    "that of runs whose minimum was met once (Good and Turing). 0.3 and 0.5 as in sphere-traps.",
    quick={
        "sizes": {"2": [10], "4": [4]},
        "starts": {"even": [128], "odd": []},
        "explored": 2,
        "cones": {"even": ["45°"], "odd": ["30°"]},
        "seeds": 20,
        "keep": False,
    },
    full={
        "sizes": {"4": [4, 5, 6, 7, 8, 9, 10], "2": [9, 10], "3": [9, 10]},
        "starts": {"even": [256, 1024], "odd": [256]},
        "explored": 2,
        # Cones of 30° are in those of 45°.
        "cones": {"even": ["45°"], "odd": ["30°"]},
        "seeds": 100,
        "keep": True,
    },
    measure=measure,
    figure=draw,
    cost=cost,
)
