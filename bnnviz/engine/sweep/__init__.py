"""Many runs on a cluster, each of which becomes a recording."""
