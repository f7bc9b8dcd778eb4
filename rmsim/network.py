"""What is simulated: a chain of core modules of finite size, with its disorder ensemble."""

from __future__ import annotations

from dataclasses import dataclass

from rmtheory import checks
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError

#: Neurons a layer: the number of couplings has to be a 64-bit integer with room to spare.
MOST_NEURONS = 100_000_000

#: Couplings have the deviation 1/sqrt(rho N), which has to be a number.
LEAST_DENSITY = 1e-12


@dataclass(frozen=True)
class Network:
    r"""A chain of core modules with `n` neurons each (paper, eqs. core-module and chain).

    .. math:: h^l_i = \sum_{j\ne i} J^l_{ij} s^l_j + J_D s^l_i + \lambda_L s^{l-1}_i
        + \lambda_R s^{l+1}_i, \qquad J^l_{ij} \sim \mathcal N(0, 1/(\rho N))

    with probability rho, 0 otherwise.

    Parameters
    ----------
    n : int
        Neurons a layer, N >= 2.
    chain : Chain
        Layers, J_D, lambda_L and lambda_R; the number of layers is finite.
    rho : float
        Density of the couplings, 0 < rho <= 1.
    symmetric : bool
        Use (J + J^T)/sqrt(2) off the diagonal (the paper's sym0).

    Examples
    --------
    >>> Network(100, Chain(2, jd=0.1, lam=0.5)).layers
    2
    """

    n: int
    chain: Chain
    rho: float = 1.0
    symmetric: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.integer("n", self.n, 2, MOST_NEURONS))
        density = float(checks.exact_real("rho", self.rho))
        if not 0 < density <= 1:
            raise InvalidInputError("rho", self.rho, "a density above 0 and at most 1")
        if density < LEAST_DENSITY:
            raise InvalidInputError("rho", self.rho, f"at least {LEAST_DENSITY:g}")
        object.__setattr__(self, "rho", density)
        self.chain.finite_layers  # noqa: B018  # refuses an infinite chain

    @property
    def layers(self) -> int:
        """Number of layers L."""
        return self.chain.finite_layers

    @property
    def jd(self) -> float:
        """Self-coupling J_D."""
        return self.chain.jd

    @property
    def lam_left(self) -> float:
        """Coupling to the previous layer."""
        return self.chain.lam_left

    @property
    def lam_right(self) -> float:
        """Coupling to the next layer."""
        return self.chain.lam_right

    def parameters(self) -> dict[str, object]:
        """The defining numbers as JSON values."""
        return {
            "n": self.n,
            "layers": self.layers,
            "jd": self.jd,
            "lam_left": self.lam_left,
            "lam_right": self.lam_right,
            "rho": self.rho,
            "symmetric": self.symmetric,
        }
