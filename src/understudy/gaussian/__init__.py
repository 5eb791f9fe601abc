"""Expectations over correlated Gaussians: closed forms, quadrature, one front door."""

from understudy.gaussian.closed import has_closed_form as has_closed_form
from understudy.gaussian.interaction import interaction as interaction
from understudy.gaussian.interaction import pair_partials as pair_partials
from understudy.gaussian.interaction import partials as partials
from understudy.gaussian.interaction import self_partials as self_partials
from understudy.gaussian.partials import BiasedPartials as BiasedPartials
from understudy.gaussian.partials import BiasedSelfPartials as BiasedSelfPartials
from understudy.gaussian.partials import Covariance as Covariance
from understudy.gaussian.partials import Estimated as Estimated
from understudy.gaussian.partials import Partials as Partials
from understudy.gaussian.partials import SelfPartials as SelfPartials
from understudy.gaussian.with_biases import biased_pair_partials as biased_pair_partials
from understudy.gaussian.with_biases import biased_self_partials as biased_self_partials
from understudy.gaussian.with_biases import single_expectations as single_expectations
