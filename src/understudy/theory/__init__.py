"""What the papers predict: one neuron, copy-average points, their spectra and regimes."""

from understudy.theory.one_neuron import NoCriticalPointError as NoCriticalPointError
from understudy.theory.one_neuron import one_neuron as one_neuron
