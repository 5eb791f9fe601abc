"""The claims of attraction-repulsion: the cheap ones in full, the figures of the others from stored-like data."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from understudy.papers import claims_of
from understudy.papers.attraction_repulsion.forces import _clustering, _on_rays
from understudy.papers.attraction_repulsion.representations import _random_networks
from understudy.papers.claim import Progress
from understudy.papers.measurement import Measurement

CLAIMS = {claim.id: claim for claim in claims_of("attraction-repulsion")}


def test_rows_are_there():
    assert {"representations", "forces", "covariances", "non-correspondence", "plateau"} <= set(CLAIMS)


@pytest.mark.thorough
def test_prop_19_is_an_erratum_with_a_consistent_version():
    claim = CLAIMS["non-correspondence"]
    found = claim.measure({"penalties": [0.3], "angles": [0.7]}, Progress())
    assert found.status == "erratum", [c for c in found.checks if not c.ok]
    claim.figure(found, Figure(layout="constrained"))


def test_random_networks_obey_proposition_1():
    found = _random_networks(4)
    assert found["above"].max() <= 1e-10
    assert found["identity"].max() <= 1e-9


def test_measures_of_clusters_and_rays():
    z = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 2.0]])
    assert _clustering(z, np.array([0, 0, 1, 1])) == 0.0
    assert _clustering(z, np.array([0, 1, 0, 1])) == pytest.approx(2.0)
    assert _on_rays(z, 2) == pytest.approx(1.0)
    assert _on_rays(z, 1) == pytest.approx(0.8)


@pytest.mark.thorough
def test_figures_are_drawn_from_data():
    rng = np.random.default_rng(0)
    base = CLAIMS["non-correspondence"].measure({"penalties": [0.3], "angles": [0.7]}, Progress()).checks
    data = {"labels": np.repeat([7, 8, 9], 2)}
    data |= {f"{name}{layer}": rng.normal(size=(5, 6)) for name in "ZAR" for layer in (1, 2)}
    CLAIMS["forces"].figure(Measurement(base, 1, data=data), Figure(layout="constrained"))
    data = {"labels": np.array(["teacher, λ = 1", "MNIST, λ = 2"])}
    for i in range(2):
        data |= {f"widths{i}": np.array([1, 2, 4]), f"losses{i}": rng.uniform(1, 2, (3, 2)), f"tests{i}": np.ones(3)}
        data[f"start{i}"] = np.array([2, 2, 4])
    CLAIMS["plateau"].figure(Measurement(base, 1, data=data), Figure(layout="constrained"))
    data = {"samples": np.array([4]), "history4": np.array([[2.0, 1.0], [1.5, 1.4]]), "excess": np.array([0.1])}
    data |= {"widths": np.array([2]), "bounds": np.array([4])}
    CLAIMS["covariances"].figure(Measurement(base, 1, data=data), Figure(layout="constrained"))
    data = {"excess": rng.uniform(size=4), "above": -rng.uniform(size=4), "gap": rng.normal(size=4)}
    data["certified"] = np.array([1e-8, np.nan, 1e-7, np.nan])
    CLAIMS["representations"].figure(Measurement(base, 1, data=data), Figure(layout="constrained"))
