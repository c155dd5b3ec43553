"""Write what to run as plain JSON, a link, Python and a command; and hold the catalogue of what there is. No torch."""
