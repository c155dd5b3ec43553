"""The dashboard, served with this folder as its root: its modules import each other by their bare names."""
