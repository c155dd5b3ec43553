"""Sample by stochastic-gradient MCMC."""
