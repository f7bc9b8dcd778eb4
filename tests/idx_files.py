"""Write IDX files, for the tests of what reads them."""

import struct

import numpy as np


def idx_bytes(array: np.ndarray) -> bytes:
    """The content of an IDX file that holds `array` as bytes."""
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()
