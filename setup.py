"""List the packages of the wheel; pyproject.toml holds everything else."""

from setuptools import find_namespace_packages, setup

# The dashboard lies in app/ and is installed as bnnviz_app. To say so, pyproject.toml would have to list every package.
_DASHBOARD = [f"bnnviz_{name}" for name in find_namespace_packages(include=["app", "app.*"])]

setup(packages=find_namespace_packages(include=["bnnviz", "bnnviz.*"]) + _DASHBOARD)
