"""Claims of "Feature Learning in L2-regularized DNNs: Attraction/Repulsion and Sparsity" (Jacot et al. 2022)."""

from understudy.papers.attraction_repulsion import linear, one_dimensional, ranks, tightness

CLAIMS = (linear.CLAIM, ranks.CLAIM, tightness.CLAIM, one_dimensional.CLAIM)
