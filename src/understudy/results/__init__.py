"""The results of a fit: runs that print as a table, as a labelled dataset, and in files."""

from understudy.results.cells import Cells as Cells
from understudy.results.dataset import from_dataset as from_dataset
from understudy.results.dataset import to_dataset as to_dataset
from understudy.results.rows import SeedRows as SeedRows
from understudy.results.runs import Run as Run
from understudy.results.runs import Runs as Runs
