"""The view inside deep networks: alignment with teachers, representations, covariances, forces, plateau."""

from understudy.layers.alignment import Alignment as Alignment
from understudy.layers.alignment import align as align
from understudy.layers.alignment import correlate as correlate
from understudy.layers.covariance import Membership as Membership
from understudy.layers.covariance import covariance_loss as covariance_loss
from understudy.layers.covariance import covariances as covariances
from understudy.layers.covariance import in_cone as in_cone
from understudy.layers.forces import LayerForces as LayerForces
from understudy.layers.forces import forces as forces
from understudy.layers.forces import signals as signals
from understudy.layers.frank_wolfe import GlobalMinimum as GlobalMinimum
from understudy.layers.frank_wolfe import block_gap as block_gap
from understudy.layers.frank_wolfe import minimise_globally as minimise_globally
from understudy.layers.plateau import Plateau as Plateau
from understudy.layers.plateau import detect_plateau as detect_plateau
from understudy.layers.recursion import LayerView as LayerView
from understudy.layers.recursion import backpropagated as backpropagated
from understudy.layers.recursion import importance as importance
from understudy.layers.recursion import mixtures as mixtures
from understudy.layers.recursion import view as view
from understudy.layers.representation import Representations as Representations
from understudy.layers.representation import optimise as optimise
from understudy.layers.representation import project as project
from understudy.layers.representation import representation_loss as representation_loss
from understudy.layers.representation import to_representations as to_representations
from understudy.layers.representation import to_weights as to_weights
