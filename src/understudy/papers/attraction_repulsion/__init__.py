"""Claims of "Feature Learning in L2-regularized DNNs: Attraction/Repulsion and Sparsity" (Jacot et al. 2022)."""

from understudy.papers.attraction_repulsion import (
    covariances,
    explosion,
    fibres,
    forces,
    growth,
    linear,
    non_correspondence,
    one_dimensional,
    plateau,
    ranks,
    representations,
    tightness,
)

CLAIMS = (
    representations.CLAIM,
    explosion.CLAIM,
    forces.CLAIM,
    linear.CLAIM,
    covariances.CLAIM,
    non_correspondence.CLAIM,
    fibres.CLAIM,
    plateau.CLAIM,
    growth.CLAIM,
    ranks.CLAIM,
    tightness.CLAIM,
    one_dimensional.CLAIM,
)
