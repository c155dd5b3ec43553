"""Where runs execute: Dask workers, and the loop that advances live runs on each."""
