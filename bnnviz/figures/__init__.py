"""Describe each figure once, as marks; draw it live on a canvas, or with HoloViews.

Each module defines a `Figure`, which turns parts of frames into marks, and a function for finished runs
(`bnnviz.plots`).
"""
