"""``python -m figures``."""

import sys

from figures.cli import run

if __name__ == "__main__":  # process pools import this module again
    sys.exit(run())
