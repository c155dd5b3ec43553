"""The past of a live run: back to a step, and several futures of one."""
