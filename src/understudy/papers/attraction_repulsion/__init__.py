"""Claims of "Feature Learning in L2-regularized DNNs: Attraction/Repulsion and Sparsity" (Jacot et al. 2022)."""

from understudy.papers.attraction_repulsion import (
    covariances,
    forces,
    non_correspondence,
    plateau,
    representations,
)

CLAIMS = (
    representations.CLAIM,
    forces.CLAIM,
    covariances.CLAIM,
    non_correspondence.CLAIM,
    plateau.CLAIM,
)
