"""What a fit leaves: runs that print as a table, the same as a labelled dataset, and the files that keep them."""

from understudy.results.cells import Cells as Cells
from understudy.results.dataset import from_dataset as from_dataset
from understudy.results.dataset import to_dataset as to_dataset
from understudy.results.rows import SeedRows as SeedRows
from understudy.results.runs import Run as Run
from understudy.results.runs import Runs as Runs
