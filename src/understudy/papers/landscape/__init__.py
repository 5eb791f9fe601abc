"""What the landscape holds beyond the papers: thresholds, branches and critical points that we measured ourselves."""

from understudy.papers.landscape import (
    basins,
    few_students,
    four_joined,
    overtaking,
    relu_splits,
    repeats,
    sphere_four,
    sphere_traps,
    stability,
)

CLAIMS = (
    overtaking.CLAIM,
    stability.CLAIM,
    basins.CLAIM,
    repeats.CLAIM,
    few_students.CLAIM,
    four_joined.CLAIM,
    sphere_traps.CLAIM,
    sphere_four.CLAIM,
    relu_splits.CLAIM,
)
