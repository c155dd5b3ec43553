"""Train what the papers compare with: optimisers, ensembles, variational and Laplace approximations."""
