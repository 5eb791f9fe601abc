"""Inside L2-regularised networks (Jacot et al. 2022): forces, representations, covariances, the plateau in width."""

from understudy.regularised.covariance import Membership as Membership
from understudy.regularised.covariance import covariance_loss as covariance_loss
from understudy.regularised.covariance import covariances as covariances
from understudy.regularised.covariance import in_cone as in_cone
from understudy.regularised.forces import LayerForces as LayerForces
from understudy.regularised.forces import forces as forces
from understudy.regularised.forces import signals as signals
from understudy.regularised.frank_wolfe import GlobalMinimum as GlobalMinimum
from understudy.regularised.frank_wolfe import block_gap as block_gap
from understudy.regularised.frank_wolfe import minimise_globally as minimise_globally
from understudy.regularised.kinks import balancing_gates as balancing_gates
from understudy.regularised.plateau import WidthPlateau as WidthPlateau
from understudy.regularised.plateau import detect_plateau as detect_plateau
from understudy.regularised.representation import Representations as Representations
from understudy.regularised.representation import optimise as optimise
from understudy.regularised.representation import project as project
from understudy.regularised.representation import representation_loss as representation_loss
from understudy.regularised.representation import to_representations as to_representations
from understudy.regularised.representation import to_weights as to_weights
