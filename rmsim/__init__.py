"""Simulator of asymmetric recurrent networks: dynamics, enumeration, thresholds, sweeps.

It is built on the types and the infrastructure of :mod:`rmtheory` (parameters, errors, files,
processes) and calls its physics only to compare, in :mod:`rmsim.compare`. Nothing is imported
here, so that the command line answers before torch is loaded: see :mod:`rmsim.network`,
:mod:`rmsim.couplings`, :mod:`rmsim.dynamics`, :mod:`rmsim.enumeration`, :mod:`rmsim.thresholds`
and :mod:`rmsim.sweep`.
"""
