"""The view inside deep networks: alignment of students with teachers, and the recursion behind their gradients."""

from understudy.layers.alignment import Alignment as Alignment
from understudy.layers.alignment import align as align
from understudy.layers.alignment import correlate as correlate
from understudy.layers.recursion import LayerView as LayerView
from understudy.layers.recursion import backpropagated as backpropagated
from understudy.layers.recursion import importance as importance
from understudy.layers.recursion import mixtures as mixtures
from understudy.layers.recursion import view as view
