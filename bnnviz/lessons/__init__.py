"""Teach in lessons: films of runs from fixed seeds, with texts whose numbers are checked.

`bnnviz/lessons/content` has the lessons, a TOML file each; `bnnviz.lessons.content` describes the format.
`bnnviz/lessons/films` has the rendered frames, which ``python -m bnnviz.lessons`` updates.
"""
