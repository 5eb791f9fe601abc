"""Many points: all critical points of a task, how they join, and the barriers between them."""

from understudy.landscape.barriers import Barrier as Barrier
from understudy.landscape.barriers import Pass as Pass
from understudy.landscape.barriers import barrier as barrier
from understudy.landscape.explore import ExploreProgress as ExploreProgress
from understudy.landscape.explore import explore as explore
from understudy.landscape.graph import Completeness as Completeness
from understudy.landscape.graph import Connection as Connection
from understudy.landscape.graph import CriticalPoint as CriticalPoint
from understudy.landscape.graph import Graph as Graph
from understudy.landscape.modes import ModeConnectivity as ModeConnectivity
from understudy.landscape.modes import mode_connectivity as mode_connectivity
from understudy.landscape.tree import Basin as Basin
