"""What is minimised: population, empirical, sphere and regularised losses, and your own."""

from understudy.tasks.empirical import Empirical as Empirical
from understudy.tasks.grids import gaussian_grid as gaussian_grid
from understudy.tasks.grids import on_grid as on_grid
from understudy.tasks.order_parameters import OrderParameters as OrderParameters
from understudy.tasks.order_parameters import order_parameters as order_parameters
from understudy.tasks.own import Loss as Loss
from understudy.tasks.population import Population as Population
from understudy.tasks.regularised import Regularised as Regularised
from understudy.tasks.sphere import Sphere as Sphere
from understudy.tasks.task import Evaluation as Evaluation
from understudy.tasks.task import Task as Task
