"""Run many specs on a cluster, each of which becomes a recording."""
