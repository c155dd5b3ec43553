"""Describe each figure once, as marks; draw it live on a canvas, or with HoloViews.

A module of a figure has a `Figure`, which turns parts of frames into marks, and a function of its own name for finished
runs (`bnnviz.plots`).
"""
