"""Expectations over correlated Gaussians: closed forms, quadrature, one front door."""

from understudy.gaussian.interaction import has_closed_form as has_closed_form
from understudy.gaussian.interaction import interaction as interaction
from understudy.gaussian.interaction import pair_partials as pair_partials
from understudy.gaussian.interaction import partials as partials
from understudy.gaussian.interaction import self_partials as self_partials
from understudy.gaussian.partials import Covariance as Covariance
from understudy.gaussian.partials import Estimated as Estimated
from understudy.gaussian.partials import Partials as Partials
from understudy.gaussian.partials import SelfPartials as SelfPartials
