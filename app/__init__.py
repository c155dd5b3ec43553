"""The dashboard: `bnnviz_app` in an environment, the folder `app` in the repository, which `panel serve app` serves."""
