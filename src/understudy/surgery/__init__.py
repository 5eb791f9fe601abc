"""Changing networks, without changing their function where possible: warm starts, split, join, grow, merge."""

from understudy.rays import aligned_groups as aligned_groups
from understudy.surgery.condense import condense as condense
from understudy.surgery.conical import reduce_by_covariance as reduce_by_covariance
from understudy.surgery.grow import Stage as Stage
from understudy.surgery.grow import grow as grow
from understudy.surgery.join import irreducible as irreducible
from understudy.surgery.join import join_parts as join_parts
from understudy.surgery.join import remove as remove
from understudy.surgery.merge import LayerMerge as LayerMerge
from understudy.surgery.merge import Merged as Merged
from understudy.surgery.merge import MergeReport as MergeReport
from understudy.surgery.merge import merge as merge
from understudy.surgery.merge import squared_norm as squared_norm
from understudy.surgery.one_dimensional import merge_by_activity as merge_by_activity
from understudy.surgery.one_dimensional import merge_one_dimensional as merge_one_dimensional
from understudy.surgery.one_dimensional import most_neurons as most_neurons
from understudy.surgery.split import part_positions as part_positions
from understudy.surgery.split import split as split
from understudy.surgery.split import split_point as split_point
from understudy.surgery.warm_start import warm_start as warm_start
