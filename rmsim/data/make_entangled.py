"""Make the file of Entangled MNIST from MNIST: ``python -m rmsim.data.make_entangled DIR``.

DIR holds the IDX files of MNIST. The seed is in :mod:`rmsim.data.dataset`.
"""

from __future__ import annotations

import sys

from rmsim.data.dataset import ENTANGLED_PATH, ENTANGLED_SEED, entangled_from, write_packed
from rmsim.data.mnist import load_images
from rmtheory.base.errors import RMError
from rmtheory.runtime.command import fail


def main(arguments: list[str]) -> int:
    """Write the file into the package and print the checksum to be put into the source."""
    if len(arguments) != 1:
        return fail("make_entangled", "DIR with the IDX files of MNIST must be given", 2)
    try:
        data = entangled_from(load_images("mnist", arguments[0]))
        write_packed(data, ENTANGLED_PATH)
    except RMError as problem:
        return fail("make_entangled", str(problem), 1)
    print(f"{ENTANGLED_PATH}: seed {ENTANGLED_SEED}, checksum {data.checksum}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
