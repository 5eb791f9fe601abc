"""The compression page shows what the stored cells say, and its verdicts follow from the numbers."""

import pytest
from benchmarks.cells import FILE, Cells, every, from_text, gather, name_of, ours, to_text
from benchmarks.compression_page import BEGIN, END, PAGE, missing, rendered
from benchmarks.compression_tables import mean_of, untuned
from benchmarks.kept import Kept

from benchmarks import hypotheses


def test_the_page_has_the_tables_of_the_stored_cells():
    page = PAGE.read_text()
    shown = page[page.index(BEGIN) + len(BEGIN) : page.index(END)].strip()
    assert shown == rendered(from_text(FILE.read_text())), "run python -m benchmarks.compression_page"


def test_cells_are_gathered_and_survive_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERSTUDY_CACHE", str(tmp_path))
    kept = Kept("compression", 0)
    kept.write(name_of("plain", 0.0, 2, "L2 + refit", 8), {"base": 0.5, "accuracy": {"0": 0.25, "1": 0.375}})
    (record,) = from_text(to_text(gather(kept)))
    assert record == {"kind": "plain", "decay": 0.0, "seed": 2, "row": "L2 + refit", "part": 8, "base": 0.5} | {
        "after 0": 0.25,
        "after 1": 0.375,
    }
    assert "1 of" not in missing([])
    assert "plain: 89 of 90 cells, 90 fine-tunings" in missing([record]).replace("\n", " ")


def test_names_of_cells_differ():
    names = [name_of(*key) for key in every()]
    assert len(set(names)) == len(names)


def cell(kind, row, part, seed=0, decay=0.0, **numbers):
    return {"kind": kind, "decay": decay, "seed": seed, "row": row, "part": part} | {
        name.replace("_", " "): value for name, value in numbers.items()
    }


@pytest.mark.parametrize(("none", "verdict"), [(0.9, "yes"), (0.88, "in 2 of 3")])
def test_floors_follow_the_numbers(none, verdict):
    values = dict(zip(ours("mlp"), (none, 0.96, 0.97), strict=True))
    records = [cell("mlp", row, 4, after_0=value) for row, value in values.items()]
    claim, cnn = hypotheses.floors(records)
    assert claim[1:] == (f"97.0 / 96.0 / {100 * none:.1f}", verdict)
    assert cnn[1:] == ("", "not measured")


def test_decay_and_growth_follow_the_numbers():
    row = ours("mlp")[2]
    lost = {0.0: 0.03, 1e-4: 0.02, 1e-3: 0.01, 1e-2: 0.02}
    records = [cell("mlp", row, 4, decay=d, base=0.98, after_0=0.98 - points) for d, points in lost.items()]
    adamw, penalty = hypotheses.decay(records)
    assert adamw[2] == "in 2 of 3"
    assert penalty[2] == "not measured"
    records = [cell("growth", "ours, random", 1, after_6=0.95), cell("growth", "gromo", 1, after_6=0.96)]
    assert hypotheses.grown(records)[1:] == ("-1.0 after 6", "no")


def test_intervals_and_missing_seeds_are_shown():
    assert (mean_of([0.5, 0.52, 0.51]), mean_of([0.5]), mean_of([])) == ("51.0 ± 2.5", "50.0", "")
    records = [cell("plain", "L2 + refit", 2, seed, after_0=0.5) for seed in range(2)]
    assert "| L2 + refit, 2,000 inputs | 50.0 ± 0.0 (2 of 3) |" in untuned(Cells(records, "plain"))
