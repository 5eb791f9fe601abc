"""Changing networks, function-preserving where it can be: merging of aligned neurons, warm starts for a smaller student."""

from understudy.surgery.conical import reduce_by_covariance as reduce_by_covariance
from understudy.surgery.merge import LayerMerge as LayerMerge
from understudy.surgery.merge import Merged as Merged
from understudy.surgery.merge import MergeReport as MergeReport
from understudy.surgery.merge import merge as merge
from understudy.surgery.merge import squared_norm as squared_norm
from understudy.surgery.one_dimensional import merge_by_activity as merge_by_activity
from understudy.surgery.one_dimensional import merge_one_dimensional as merge_one_dimensional
from understudy.surgery.one_dimensional import most_neurons as most_neurons
from understudy.surgery.warm_start import warm_start as warm_start
