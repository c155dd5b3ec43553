"""Train the papers' baselines: optimisers, ensembles, variational and Laplace approximations."""
