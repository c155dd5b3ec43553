"""``python -m bnnviz``: the command line."""

from bnnviz.cli.main import main

if __name__ == "__main__":
    main()
