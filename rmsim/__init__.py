"""Simulator of asymmetric recurrent networks (dynamics, enumeration, message passing, learning).

The simulator is built on the types of :mod:`rmtheory`, which it otherwise calls only to compare
its measurements with the theory. It has no public function yet.
"""
