"""Stochastic-gradient MCMC."""
