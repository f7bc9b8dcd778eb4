"""``python -m rmsim``."""

from rmsim.cli import main

if __name__ == "__main__":
    main()
