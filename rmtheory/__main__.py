"""``python -m rmtheory``."""

from rmtheory.cli import main

main()
