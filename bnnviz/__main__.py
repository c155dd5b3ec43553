"""``python -m bnnviz``: the command line."""

from bnnviz.cli import main

if __name__ == "__main__":
    main()
