"""What is minimised: population, empirical, sphere and regularised losses."""

from understudy.tasks.population import Population as Population
