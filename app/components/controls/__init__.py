"""What somebody sets: controls, sidebars, pickers, data that are drawn or opened."""
