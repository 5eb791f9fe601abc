"""Deep ReLU students trained by SGD: the description of an experiment, and the runs of its seeds."""

from understudy.experiments.aligning.clusters import collect_on_cluster
from understudy.experiments.aligning.experiment import Experiment, Problem, draw, schedule
from understudy.experiments.aligning.runs import NotStoredError, collect, run, students_of, train_on
from understudy.experiments.aligning.summaries import summarise_recovery
