"""Draw the predictions of networks and their quality."""
