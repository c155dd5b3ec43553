"""Run the command line as ``python -m bnnviz.cli``."""

from bnnviz.cli.main import main

if __name__ == "__main__":
    main()
