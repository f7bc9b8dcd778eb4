"""Local entropy of the fixed points: y*(d), S_I, S_E, critical couplings (paper, SM-B)."""
