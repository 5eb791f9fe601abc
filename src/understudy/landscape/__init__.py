"""Many points: all critical points of a task, how they join, and the barriers between them."""

from understudy.landscape.explore import ExploreProgress as ExploreProgress
from understudy.landscape.explore import explore as explore
from understudy.landscape.graph import Completeness as Completeness
from understudy.landscape.graph import Connection as Connection
from understudy.landscape.graph import CriticalPoint as CriticalPoint
from understudy.landscape.graph import Graph as Graph
from understudy.landscape.tree import Branch as Branch
