"""Build frames, the data of the views at one instant."""
