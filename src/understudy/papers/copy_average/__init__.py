"""Claims of "Should Under-parameterized Student Networks Copy or Average Teacher Weights?" (Simsek et al. 2023)."""

from understudy.papers.copy_average.assumptions import CLAIM as assumptions
from understudy.papers.copy_average.conjecture import CLAIM as conjecture
from understudy.papers.copy_average.counting import CLAIM as counting
from understudy.papers.copy_average.critical import CLAIM as critical
from understudy.papers.copy_average.damped import CLAIM as damped
from understudy.papers.copy_average.hessian import CLAIM as hessian
from understudy.papers.copy_average.interaction import CLAIM as interaction
from understudy.papers.copy_average.misprints import CLAIMS as misprints
from understudy.papers.copy_average.one_neuron import CLAIM as one_neuron
from understudy.papers.copy_average.optimal import CLAIM as optimal
from understudy.papers.copy_average.order_parameters import CLAIM as order_parameters
from understudy.papers.copy_average.regimes import CLAIM as regimes
from understudy.papers.copy_average.relu_structure import CLAIM as relu_structure
from understudy.papers.copy_average.saad_solla import CLAIM as saad_solla
from understudy.papers.copy_average.span import CLAIM as span
from understudy.papers.copy_average.trajectories import CLAIM as trajectories
from understudy.papers.copy_average.warm_start import CLAIM as warm_start

CLAIMS = (
    interaction,
    assumptions,
    order_parameters,
    span,
    one_neuron,
    damped,
    critical,
    optimal,
    counting,
    regimes,
    hessian,
    trajectories,
    relu_structure,
    saad_solla,
    conjecture,
    warm_start,
    *misprints,
)
