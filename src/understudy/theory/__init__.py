"""What the papers predict: one neuron, copy-average points, their spectra and regimes."""

from understudy.theory.any_teacher import NeuronPoint as NeuronPoint
from understudy.theory.any_teacher import NeuronSearch as NeuronSearch
from understudy.theory.any_teacher import one_neuron_points as one_neuron_points
from understudy.theory.copy_average import copy_average as copy_average
from understudy.theory.copy_average import copy_average_loss as copy_average_loss
from understudy.theory.copy_average import count as count
from understudy.theory.copy_average import predicted_loss as predicted_loss
from understudy.theory.copy_average import rank as rank
from understudy.theory.one_neuron import NoCriticalPointError as NoCriticalPointError
from understudy.theory.one_neuron import one_neuron as one_neuron
from understudy.theory.regimes import fit_regimes as fit_regimes
from understudy.theory.symmetric_hessian import symmetric_spectrum as symmetric_spectrum
