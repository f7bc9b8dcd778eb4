"""What the verdicts grant: how far our number may be from that of a claim, and why.

One table for all claims, fixed before the runs that they judge, but for what
:data:`figures.report.contents.AFTERWARDS` lists. Where a claim names none of these, half a unit of
the last printed digit is granted to an equality, and nothing to an inequality. A sign such as ⪅ or
⪆ is read as an inequality that grants the rounding of its number.
"""

from __future__ import annotations

from figures.claims.claim import ROUNDING, Grant

#: A statement without a number that is either true or false.
EXACT = Grant(0.0, "an exact statement")

#: Identities, to what double precision loses in the quantity concerned.
ARITHMETIC_ENTROPY = Grant(1e-12, "an identity; rounding of one entropy in double precision")
ARITHMETIC_EXPONENT = Grant(1e-9, "an identity; the exponent is a maximum found numerically")
ARITHMETIC_COEFFICIENT = Grant(1e-8, "an identity; second derivatives of entropies")
VANISHES = Grant(1e-6, "S_I* ~ (d/2) log(1/d) is below this at d = 1e-8, where it is read")
CONTINUED = Grant(1e-3, "S_I* is continued over the last 0.01 of d along its slope")

#: Signs such as ⪅: the printed number is rounded.
ROUNDED_TENTHS = Grant(0.05, ROUNDING)
ROUNDED_HUNDREDTHS = Grant(0.005, ROUNDING)

#: 'Converges', 'able to find'.
RELIABLY = Grant(0.05, "'converges', 'able to find': all networks but one in twenty")

#: Chosen before the runs at N = 2000, after 0.33(21) had been seen at N = 400.
ISOLATED = Grant(0.1, "'isolated': fewer than one in ten has a neighbour at one flip")

UNREACHABLE = Grant(0.05, "'unreachable': fewer than one network in twenty")

#: Accuracies.
GUESSING = Grant(0.05, "'random guessing', 'unable to learn': less than 0.05 above one in ten")
COMPARABLE = Grant(0.01, "'comparable': one image in a hundred; the paper prints no accuracy")
EQUIVALENT = Grant(0.01, "'equivalent', 'behaves as', 'comparable': one image in a hundred")
LITTLE = Grant(0.02, "'little-to-no impact', 'preserves': two images in a hundred")
#: The error of the images is in the grant, so that of our number is the spread of networks alone.
#: (Until 18 November 2026 it was counted twice, which left the two claims at lambda_x = 2 open
#: whatever the number of networks.)
ONE_NETWORK = Grant(
    0.005, "one network on 10,000 images, theirs and ours: 0.35 % each, one standard error"
)

WHOLE_PERCENT = Grant(
    0.01, "rounding, and one network on 10,000 images, theirs and ours, one standard error"
)

#: One network of theirs against some of ours.
CURVATURE = Grant(0.01, "means over other pairs of inputs and another network than theirs")
CURVATURE_SPREAD = Grant(0.005, "deviations over other pairs of inputs and another network")
OVERLAP_OF_THEORY = Grant(0.006, "theirs is one network of N = 1600, ours a mean or a limit")
OVERLAP = Grant(0.0025, "two networks of N = 1600 differ by about 0.002 at initialisation")

#: Matrices and layers.
RANDOM_SYMMETRY = Grant(0.01, "'close to 0': the level of a random matrix is of order 1/N")
EXACT_SYMMETRY = Grant(1e-5, "an identity; sums in single precision, exact to 1e-6")
DECORRELATED = Grant(0.1, "'essentially de-correlated': an overlap below 0.1")
#: Chosen before any capacity was measured for the trial, with those of a prototype at N = 100 to
#: 400 known; χ² of four widths has no power. P ~ N^1.1 from 200 to 1000 has a bend of 0.016.
LINEAR = Grant(0.015, "'linear': nearer to it than P_max ∝ N^1.1 from N = 200 to 1000")
CYCLES = Grant(0.01, "'convergent': all samples but one in a hundred")
