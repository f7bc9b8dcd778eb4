"""What is simulated: a chain of core modules of finite size, with its disorder ensemble."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmtheory.base import checks
from rmtheory.base.chain import Chain
from rmtheory.base.errors import InvalidInputError

if TYPE_CHECKING:
    from rmsim.given import Given

#: Neurons per layer: the number of couplings has to be a 64-bit integer with room to spare.
MOST_NEURONS = 100_000_000

#: Couplings have the deviation 1/sqrt(rho N), which has to be a number.
LEAST_DENSITY = 1e-12


@dataclass(frozen=True)
class Network:
    r"""A chain of core modules with `n` neurons per layer (paper, eqs. core-module and chain).

    .. math:: h^l_i = \sum_{j\ne i} J^l_{ij} s^l_j + J_D s^l_i + \lambda_L s^{l-1}_i
        + \lambda_R s^{l+1}_i, \qquad J^l_{ij} \sim \mathcal N(0, 1/(\rho N))

    with probability rho, 0 otherwise.

    Parameters
    ----------
    n : int
        Neurons per layer, N >= 2.
    chain : Chain
        Layers, J_D, lambda_L and lambda_R; the number of layers is finite.
    rho : float
        Density of the couplings, 0 < rho <= 1.
    symmetric : bool
        Use (J + J^T)/sqrt(2) off the diagonal (the paper's sym0).
    given : Given, optional
        Couplings of the user's own instead of drawn ones; see :meth:`from_array`.

    Examples
    --------
    >>> import rmsim as rs
    >>> rs.Network(100, rs.Chain(2, jd=0.1, lam=0.5)).layers
    2
    """

    n: int
    chain: Chain
    rho: float = 1.0
    symmetric: bool = False
    given: Given | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.integer("n", self.n, 2, MOST_NEURONS))
        density = float(checks.exact_real("rho", self.rho))
        if not 0 < density <= 1:
            raise InvalidInputError("rho", self.rho, "a density above 0 and at most 1")
        if density < LEAST_DENSITY:
            raise InvalidInputError("rho", self.rho, f"at least {LEAST_DENSITY:g}")
        object.__setattr__(self, "rho", density)
        layers = self.chain.finite_layers  # refuses an infinite chain
        if self.given is not None:
            for name, value in (("n", self.n), ("layers", layers), ("rho", density)):
                if value != getattr(self.given, name):
                    allowed = f"{getattr(self.given, name)}, that of the couplings given"
                    raise InvalidInputError(name, value, allowed)

    @classmethod
    def from_array(
        cls,
        J: Any,
        jd: float = 0.0,
        lam: float | None = None,
        *,
        lam_left: float | None = None,
        lam_right: float | None = None,
    ) -> Network:
        r"""Return a network with couplings of your own, which goes wherever drawn ones do.

        It is a single disorder sample, number 0; seeds still rule its starts and masks. The
        couplings are taken in the precision of the call (float32 unless it says float64).

        Parameters
        ----------
        J : array_like, Tensor, scipy sparse matrix, or path of an .npy, .npz or .mtx file
            (n, n) for one layer, or (layers, n, n) for a chain: J[l, i, j] acts from neuron j on
            neuron i of layer l. Sparse matrices: one, or a list with one per layer. Real, finite,
            at most 1e30 in size, and zero on the diagonal.
        jd : float
            Self-coupling J_D.
        lam, lam_left, lam_right : float
            Couplings between homologous neurons of neighbouring layers, as for
            :class:`rmtheory.base.chain.Chain`.

        Examples
        --------
        >>> import rmsim as rs
        >>> ring = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]  # neuron i follows neuron i - 1
        >>> network = rs.Network.from_array(ring, jd=0.5)
        >>> network.n, network.layers, network.symmetric
        (3, 1, False)
        >>> rs.enumerate_fixed_points(network).count
        2
        """
        from rmsim.given import given_couplings

        given = given_couplings(J)
        chain = Chain(given.layers, jd, lam, lam_left=lam_left, lam_right=lam_right)
        return cls(given.n, chain, given.rho, given.symmetric, given)

    @property
    def entries(self) -> float:
        """Couplings J_ij that exist, on average."""
        return self.rho * self.layers * self.n**2

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
        } | ({} if self.given is None else {"couplings": f"sha256:{self.given.digest}"})
