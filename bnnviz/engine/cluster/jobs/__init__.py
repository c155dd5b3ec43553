"""Do calls on the workers of a cluster, each until it is done."""
