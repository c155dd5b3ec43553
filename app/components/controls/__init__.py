"""Controls at the side of a page: settings, pickers, data that are drawn or opened."""
