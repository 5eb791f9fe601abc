"""Deep ReLU students under SGD: an experiment in words, and the runs of its seeds."""

from understudy.aligning.clusters import collect_on_cluster
from understudy.aligning.experiment import Experiment, Problem, draw, schedule
from understudy.aligning.runs import collect, run, students_of, train_on
