"""Begin with a table of the user's own, and predict a row that is typed in."""
