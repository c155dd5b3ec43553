"""Execute runs: Dask workers, and the loop that advances live runs on each."""
