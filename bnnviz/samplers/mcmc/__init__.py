"""Sample by Hamiltonian Monte Carlo and NUTS."""
