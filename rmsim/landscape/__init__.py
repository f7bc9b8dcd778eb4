"""The landscape of attractors (paper, SM-G): paths between them, and their robustness to noise.

Nothing here knows how a network was made: functions take any map from inputs to states
(``Relax``), or from states and inputs to states (``Evolve``), on tensors of spins whose last
dimension is that of the sites.
"""

from rmsim.landscape.curvature import Curvature, curvature, path_curvature
from rmsim.landscape.displacement import Displacement, displacement, flipped
from rmsim.landscape.inputs import Evolve, Relax, hamming, intermediate, path
from rmsim.landscape.trajectories import trajectory_distances

__all__ = [
    "Curvature",
    "Displacement",
    "Evolve",
    "Relax",
    "curvature",
    "displacement",
    "flipped",
    "hamming",
    "intermediate",
    "path",
    "path_curvature",
    "trajectory_distances",
]
