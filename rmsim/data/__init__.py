"""Data sets to learn from, as frozen arrays with their origin, licence and checksum.

Entangled MNIST ships with the package (:mod:`rmsim.data.entangled`); MNIST and Fashion-MNIST are
read from IDX files or downloaded (:mod:`rmsim.data.mnist`).
"""
