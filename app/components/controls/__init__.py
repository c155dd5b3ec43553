"""Control a page from its side: settings, pickers, data that are drawn or opened."""
