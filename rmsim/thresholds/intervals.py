r"""Confidence intervals of a probability from k successes in m trials.

Wilson's interval, all P with :math:`|k/m - P| \le z \sqrt{P (1 - P)/m}`, is used for error bars:
it has the right length at k = 0 and k = m too, where a naive error would vanish. Clopper and
Pearson's covers at least what it says, and is longer.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from rmsim.dynamics.summary import wilson_half_width
from rmtheory.errors import InvalidInputError

Array = NDArray[np.float64]

#: Confidence of one standard deviation.
ONE_SIGMA = float(special.erf(np.sqrt(0.5)))

Method = Literal["wilson", "exact"]


def interval(
    successes: ArrayLike,
    trials: ArrayLike,
    confidence: float = ONE_SIGMA,
    method: Method = "wilson",
) -> tuple[Array, Array]:
    """Return the ends of the interval, arrays of the common shape.

    Parameters
    ----------
    successes, trials : array_like of int
        Numbers k <= m, m >= 1.
    confidence : float
        Between 0 and 1; one standard deviation if not given.
    method : str
        ``wilson``, or ``exact`` for Clopper and Pearson.

    Examples
    --------
    >>> low, high = interval(0, 10, 0.95, "exact")
    >>> print(f"{low:.4f} {high:.4f}")
    0.0000 0.3085
    """
    if not 0 < confidence < 1:
        raise InvalidInputError("confidence", confidence, "strictly between 0 and 1")
    k, m = (np.asarray(a) for a in np.broadcast_arrays(successes, trials))
    if np.any(m < 1) or np.any(k < 0) or np.any(k > m):
        raise InvalidInputError("successes", "k and m", "counts with 0 <= k <= m and m >= 1")
    if method == "exact":
        # Quantiles of the beta distribution; the ends at k = 0 and k = m are 0 and 1.
        tail = (1 - confidence) / 2
        low = np.where(k > 0, stats.beta.ppf(tail, np.maximum(k, 1), m - k + 1), 0.0)
        high = np.where(k < m, stats.beta.isf(tail, k + 1, np.maximum(m - k, 1)), 1.0)
        return low, high
    z = float(special.ndtri((1 + confidence) / 2))
    centre = (k + z * z / 2) / (m + z * z)
    half = wilson_half_width(k / m, m, z)
    # Rounding must not push the ends beyond what was measured at k = 0 and k = m.
    return np.where(k > 0, centre - half, 0.0), np.where(k < m, centre + half, 1.0)


def fraction(successes: ArrayLike, trials: ArrayLike) -> tuple[Array, Array]:
    """Return k/m and half the length of Wilson's interval of one standard deviation.

    Examples
    --------
    >>> value, error = fraction(3, 4)
    >>> print(f"{value:.2f} {error:.2f}")
    0.75 0.20
    """
    low, high = interval(successes, trials)
    return np.asarray(np.asarray(successes) / np.asarray(trials)), (high - low) / 2
