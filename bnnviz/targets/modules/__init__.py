"""Accept any module: reject those without a posterior, and call the others with each chain's weights."""
