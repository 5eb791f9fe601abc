"""The constants of Lemmas 5 and 6."""

import numpy as np

from understudy.papers.alignment import constants


def test_planks_cover_the_ball_below_the_sharp_constant_only():
    angle = constants.constants(2, 5, 1e-3, 1e-3, 0.1, 1.0, 1.0)[0]
    sharp = 0.8 * np.sqrt(np.pi) / 2
    assert constants._covered(0.999 * sharp * angle, 4, 2, 1e-3)
    assert not constants._covered(1.001 * sharp * angle, 4, 2, 1e-3)


def test_least_combinations_keep_the_bounds_of_lemma_6():
    found = constants._small_combination(np.random.default_rng(0), 1e-3, 1)
    assert 0 < found["epsilon"] < 1e-3
    assert found["ratio"] < 1
    assert found["bound"] < 0.5
