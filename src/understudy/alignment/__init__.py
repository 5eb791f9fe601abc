"""How over-parameterised ReLU students align with a teacher (Tian 2020): correlations, observers, recursion,
pruning."""

from understudy.alignment.correlations import Alignment as Alignment
from understudy.alignment.correlations import align as align
from understudy.alignment.correlations import correlate as correlate
from understudy.alignment.correlations import recovery_interval as recovery_interval
from understudy.alignment.observers import observations as observations
from understudy.alignment.observers import observes_in_ball as observes_in_ball
from understudy.alignment.pruning import Pruned as Pruned
from understudy.alignment.pruning import group_sums as group_sums
from understudy.alignment.pruning import prune_unaligned as prune_unaligned
from understudy.alignment.recursion import LayerView as LayerView
from understudy.alignment.recursion import backpropagated as backpropagated
from understudy.alignment.recursion import importance as importance
from understudy.alignment.recursion import mixtures as mixtures
from understudy.alignment.recursion import view as view
from understudy.alignment.streaming import measure as measure
from understudy.alignment.streaming import refer as refer
