r"""Approximate message passing (AMP): belief propagation on large dense networks, many at a time.

Dense BP sends one message along every edge; for independent couplings they differ little, and each
site (see :mod:`rmsim.search.chain_site`) needs only their sums,

.. math::
    V_i &= \sum_j J_{ij}^2 (1 - m_j^2), & \omega &= J m - V g_\text{old}, \\
    g &= \partial_\omega \log Z(\omega, V, c_\text{old} + b_\text{old}), &
    c_j &= (J^T g)_j - m_j \sum_i J_{ij}^2\, \partial^2_{\omega_i} \log Z_i, \\
    \tanh h &= m = \partial_c \log Z(\omega, V, c + b). &&

The terms - V g and - m sum J^2 g' (Onsager) take back what a site has itself sent out. The
pull b on the spins is an external field in the measure, reinforcement, or the other replicas.

The iteration has the stationary points of the free entropy (:func:`functional`) as fixed points.
Whether it converged is part of the result: networks end one by one, and each says how. For one
layer and small m the mean of m^2 changes per iteration by

.. math:: \gamma^2 e^{2\,\mathrm{arsinh}(|J_D|/2)}, \qquad \gamma = n(J_D)/P(J_D),

which is below 1 while gamma^2 + |J_D| gamma < 1: m = 0 is stable for all J_D > -0.178.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import torch

from rmsim.couplings.base import demand_couplings, runs
from rmsim.couplings.chains import DenseChain, draw_dense, multiply, sample_numbers
from rmsim.dynamics.active import ActiveSet, Callback, Index, PerNetwork, Search
from rmsim.dynamics.status import Status
from rmsim.network import Network
from rmsim.search.chain_site import (
    LEAST_VARIANCE,
    Bonds,
    factors_of,
    log_odds,
    log_partition,
    responses,
    sum_site,
)
from rmsim.tensors import (
    Numbers,
    checked_seed,
    checked_sync_interval,
    choose_device,
    choose_dtype,
    generator,
    sign,
    tensor_of,
    traced,
)
from rmtheory.base import checks
from rmtheory.base.errors import InvalidInputError, UnreadableDataError
from rmtheory.runtime.untrusted import MALFORMED

if TYPE_CHECKING:
    import xarray as xr

#: Largest change of m and g that counts as none.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}

#: Magnetisations below so many tolerances are zero.
SMALL = 100


#: How the squares of the couplings are taken.
Variances = Literal["rank-one", "exact"]


class Products:
    r"""Products with the couplings of some networks; `active` numbers these networks.

    .. math:: V_i = \sum_j J_{ij}^2 (1 - m_j^2), \qquad \sum_i J_{ij}^2 g'_i .

    The squares are taken either exactly, by two more products per iteration and twice the memory,
    or as the matrix of rank one that has their row and column sums,
    :math:`J_{ij}^2 \approx R_i C_j / \sum_{kl} J_{kl}^2`, in O(N): exact at m = 0, and off by
    O(1/sqrt N) elsewhere. Both are the derivatives of one function of m, so that the free entropy
    is stationary in either.

    Parameters
    ----------
    couplings : DenseChain
        Dense couplings, independent of each other: J_ij and J_ji must not be equal.
    variances : str
        ``rank-one`` or ``exact``.
    compile : bool
        Let :func:`torch.compile` fuse the operations of an iteration (:func:`step`).
    """

    def __init__(
        self, couplings: DenseChain, variances: str = "rank-one", *, compile: bool = False
    ) -> None:
        if variances not in get_args(Variances):
            allowed = f"one of {', '.join(get_args(Variances))}"
            raise InvalidInputError("variances", variances, allowed)
        self.couplings = couplings
        matrices = couplings.asymmetric_matrices()
        self._squares = matrices.square() if variances == "exact" else None
        if self._squares is None:
            rows, columns = (
                torch.linalg.vector_norm(matrices, dim=axis).square_() for axis in (-1, -2)
            )
            scale = rows.sum(-1, keepdim=True).clamp(min=torch.finfo(rows.dtype).tiny).rsqrt()
            self._rows, self._columns = rows * scale, columns * scale
        self._compile = compile
        if compile:  # bonds as a tensor: another number is no other graph then
            chain = (couplings.jd, couplings.lam_left, couplings.lam_right)
            self._bonds = torch.tensor(chain, dtype=couplings.dtype, device=couplings.device)
        self._picked: tuple[list[int] | None, _Picked] | None = None

    def iterate(
        self,
        messages: Messages,
        pull: torch.Tensor,
        external: torch.Tensor | None,
        active: Sequence[int] | None,
    ) -> Messages:
        """Return the messages one iteration later: see :func:`step`."""
        couplings = self.couplings
        if not self._compile:
            return _advanced(self, bonds_of(couplings), messages, pull, external, active)
        picked = self._tensors(active)
        kind = (couplings.layers, couplings.dtype, picked[1] is None, external is None)
        iterate = traced(_iterate, (*kind, couplings.device.type))
        return Messages(*iterate(picked, messages.tensors(), pull, external, self._bonds))

    def _tensors(self, active: Sequence[int] | None) -> _Picked:
        """Return the couplings of the active networks, a copy if these are not all.

        It is kept until others are requested: networks are left out at readings only.
        """
        wanted = None if active is None else list(active)
        if self._picked is None or self._picked[0] != wanted:
            matrices, squares = self.couplings.matrices, self._squares
            if wanted is not None:
                parts = [there for _, there in runs(wanted, len(matrices))]
                matrices = torch.cat([matrices[part] for part in parts])
                squares = None if squares is None else torch.cat([squares[x] for x in parts])
            sides = (None, None) if squares is not None else self._sides(wanted)
            self._picked = wanted, (matrices, squares, *sides)
        return self._picked[1]

    def forward(self, m: torch.Tensor, active: Sequence[int] | None = None) -> torch.Tensor:
        """Return J m, of shape (samples, layers, n) as m."""
        return _product(self.couplings.matrices, m, active, transposed=False)

    def backward(self, g: torch.Tensor, active: Sequence[int] | None = None) -> torch.Tensor:
        """Return J^T g."""
        return _product(self.couplings.matrices, g, active, transposed=True)

    def spread(self, x: torch.Tensor, active: Sequence[int] | None = None) -> torch.Tensor:
        """Return the sums of J_ij^2 x_j over j."""
        if self._squares is not None:
            return _product(self._squares, x, active, transposed=False)
        rows, columns = self._sides(active)
        return rows * (columns * x).sum(-1, keepdim=True)

    def spread_back(self, y: torch.Tensor, active: Sequence[int] | None = None) -> torch.Tensor:
        """Return the sums of J_ij^2 y_i over i."""
        if self._squares is not None:
            return _product(self._squares, y, active, transposed=True)
        rows, columns = self._sides(active)
        return columns * (rows * y).sum(-1, keepdim=True)

    def _sides(self, active: Sequence[int] | None) -> tuple[torch.Tensor, torch.Tensor]:
        if active is None:
            return self._rows, self._columns
        # By slices: a list of numbers would have to be sent to the device first.
        parts = [there for _, there in runs(active, len(self._rows))]
        rows, columns = (
            torch.cat([x[part] for part in parts]) for x in (self._rows, self._columns)
        )
        return rows, columns


#: Couplings, (networks, layers, n, n), and either their squares or the two sides of these.
_Picked = tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]


class _Linear:
    """The same products by operations that :func:`torch.compile` can trace and fuse."""

    def __init__(self, picked: _Picked) -> None:
        self._matrices, self._squares, self._rows, self._columns = picked

    def forward(self, m: torch.Tensor, active: Sequence[int] | None = None) -> torch.Tensor:
        return torch.matmul(self._matrices, m.unsqueeze(-1)).squeeze(-1)

    def backward(self, g: torch.Tensor, active: Sequence[int] | None = None) -> torch.Tensor:
        return torch.matmul(self._matrices.mT, g.unsqueeze(-1)).squeeze(-1)

    def spread(self, x: torch.Tensor, active: Sequence[int] | None = None) -> torch.Tensor:
        if self._squares is not None:
            return torch.matmul(self._squares, x.unsqueeze(-1)).squeeze(-1)
        assert self._rows is not None
        assert self._columns is not None
        return self._rows * (self._columns * x).sum(-1, keepdim=True)

    def spread_back(self, y: torch.Tensor, active: Sequence[int] | None = None) -> torch.Tensor:
        if self._squares is not None:
            return torch.matmul(self._squares.mT, y.unsqueeze(-1)).squeeze(-1)
        assert self._rows is not None
        assert self._columns is not None
        return self._columns * (self._rows * y).sum(-1, keepdim=True)


def _iterate(
    picked: _Picked,
    messages: tuple[torch.Tensor, ...],
    pull: torch.Tensor,
    external: torch.Tensor | None,
    bonds: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """Do one iteration on tensors: what is compiled."""
    inside = Bonds(*bonds.unbind())  # type: ignore[arg-type]  # numbers that a graph does not hold
    return _advanced(_Linear(picked), inside, Messages(*messages), pull, external, None).tensors()


def _product(
    matrices: torch.Tensor, x: torch.Tensor, active: Sequence[int] | None, *, transposed: bool
) -> torch.Tensor:
    """Multiply all layers of consecutive networks at once: single rows use one thread each."""
    out, n = torch.empty_like(x), x.shape[-1]
    for here, there in runs(active, len(matrices)):
        blocks = matrices[there].flatten(0, 1)
        if transposed:
            blocks = blocks.transpose(1, 2)
        multiply(blocks, x[here].reshape(-1, 1, n), out[here].view(-1, 1, n), None)
    return out


#: Fields are clipped here, where tanh is 1 in float64 and 1 - tanh^2 is not yet 0 in float32.
MOST_FIELD = 40.0


@dataclass(frozen=True, eq=False)
class Messages(PerNetwork):
    """The state of message passing; all tensors have the shape (samples, layers, n).

    Parameters
    ----------
    h : Tensor
        Half the log odds of the spins, m = tanh h.
    c : Tensor
        Field on the spins from the other sites.
    g : Tensor
        d log Z/d omega.
    omega, v : Tensor
        Means and variances of the Gaussian fields.
    pull : Tensor
        Field on the spins from outside, as it was when `h` was computed.
    """

    h: torch.Tensor
    c: torch.Tensor
    g: torch.Tensor
    omega: torch.Tensor
    v: torch.Tensor
    pull: torch.Tensor

    @property
    def m(self) -> torch.Tensor:
        """Magnetisations."""
        return self.h.tanh()

    @property
    def state(self) -> torch.Tensor:
        """Signs of the magnetisations; +1 for 0."""
        return sign(self.h)

    def scaled(self, factor: torch.Tensor) -> Messages:
        """Return the messages times a factor of each network; the variances stay."""
        scale = factor[:, None, None]
        h, c, g, omega, v, pull = self.tensors()
        return Messages(h * scale, c * scale, g * scale, omega * scale, v, pull * scale)


def first_messages(h: torch.Tensor) -> Messages:
    """Return messages that say h and nothing else."""
    zero = torch.zeros_like(h)
    return Messages(h, h, zero, zero, torch.ones_like(h), zero)


def random_fields(
    seed: int,
    samples: range,
    layers: int,
    n: int,
    *,
    scale: float = 0.5,
    attempt: int = 0,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> torch.Tensor:
    """Return independent normal fields h of deviation `scale`; those of sample k from k only.

    Parameters
    ----------
    seed : int
        Sample k draws from ``generator(seed, k, 1)``, its restart r from
        ``generator(seed, k, 1, r)``.
    samples : range
        Disorder samples.
    layers, n : int
        Size of the networks.
    scale : float
        Deviation; below some tenths reinforcement may not get off the ground.
    attempt : int
        Number of the restart, 0 for the first run.
    dtype, device
        Precision and place.
    """
    fields = torch.empty((len(samples), layers, n), dtype=dtype, device=device)
    for index, sample in enumerate(samples):
        address = (sample, 1, attempt) if attempt else (sample, 1)
        stream = generator(seed, *address, device=device)
        drawn = torch.randn((layers, n), generator=stream, device=device)
        fields[index] = scale * drawn
    return fields


def bonds_of(couplings: DenseChain) -> Bonds:
    """Return J_D and the lambdas of a chain."""
    return Bonds(couplings.jd, couplings.lam_left, couplings.lam_right)


def step(
    products: Products,
    messages: Messages,
    pull: torch.Tensor,
    external: torch.Tensor | None = None,
    *,
    active: Sequence[int] | None = None,
) -> Messages:
    """Return the messages one iteration later.

    Parameters
    ----------
    products : Products
        The couplings.
    messages : Messages
        Of the `active` networks.
    pull : Tensor, (samples, layers, n) or broadcastable
        Field on the spins in the measure, e^{pull s}.
    external : Tensor, optional
        External field of the dynamics: it moves the constraints, s (h + external) > 0.
    active : sequence of int, optional
        The networks of `messages`, increasing; all by default.
    """
    return products.iterate(messages, pull, external, active)


def _advanced(
    products: Products | _Linear,
    bonds: Bonds,
    messages: Messages,
    pull: torch.Tensor,
    external: torch.Tensor | None,
    active: Sequence[int] | None,
) -> Messages:
    """Return the messages one iteration later, by these products."""
    m = messages.m
    v = products.spread(uncertainty(messages.h), active)
    omega = products.forward(m, active).addcmul_(v, messages.g, value=-1)
    shifted = omega if external is None else omega + external
    factors = factors_of(shifted, v, bonds)
    g, dg = responses(factors, messages.c + messages.pull)
    c = products.backward(g, active).addcmul_(m, products.spread_back(dg, active), value=-1)
    h = log_odds(factors, c + pull).clamp_(-MOST_FIELD, MOST_FIELD)
    return Messages(h, c, g, omega, v, pull.expand(h.shape))


def uncertainty(h: torch.Tensor) -> torch.Tensor:
    """Return 1 - tanh(h)^2, which does not round to 0 for large fields."""
    decay = (-2 * h.abs()).exp()
    return 4 * decay / (1 + decay).square()


def functional(
    fields: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor],
    jm: torch.Tensor,
    v: torch.Tensor,
    bonds: Bonds,
    field: torch.Tensor | None = None,
    external: torch.Tensor | None = None,
) -> torch.Tensor:
    r"""Return the Bethe (TAP) free entropy of every network, (samples,), differentiable.

    .. math:: \Phi(m, c, \omega, g) = \sum_i \log Z_i(\omega_i + b_i, V_i, c_i + f_i)
        + \sum_{il} \Big[ g (J m - \omega) - c\, m - \tfrac12 V g^2 \Big],
        \qquad V_i = \sum_j J_{ij}^2 (1 - m_j^2)

    with f the field on the spins in the measure and b the external field of the dynamics. Its
    derivatives by c, omega and g give m, g and omega; that by m gives c, because
    :math:`\partial_V Z = \frac12 \partial^2_\omega Z`. At a solution Phi is
    sum log Z - c m + V g^2/2. It estimates the logarithm of sum e^{f s} over fixed points, and
    S = Phi - f m their entropy. At m = 0 it is N log 2 + sum_i log P(J_D/sqrt V_i) for one layer.

    Parameters
    ----------
    fields : tuple of Tensor, (samples, layers, n)
        m, c, omega and g.
    jm, v : Tensor
        J m and the variances at m.
    bonds : Bonds
        Couplings within a site.
    field, external : Tensor, optional
        Field on the spins in the measure, and in the dynamics.
    """
    m, c, omega, g = fields
    pulled = c if field is None else c + field
    shifted = omega if external is None else omega + external
    log_z = log_partition(factors_of(shifted, v, bonds), pulled)
    rest = g * (jm - omega) - c * m - 0.5 * v * g * g
    return log_z.sum(-1) + rest.sum((-1, -2))


def free_entropy(
    products: Products,
    messages: Messages,
    field: torch.Tensor | None = None,
    external: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return Phi of every network at `messages`, (samples,), summed in float64."""
    double = torch.float64
    m, c, omega, g = (x.to(double) for x in (messages.m, messages.c, messages.omega, messages.g))
    jm = products.forward(m)
    v = products.spread(uncertainty(messages.h.to(double)))
    more = (None if x is None else x.to(double) for x in (field, external))
    return functional((m, c, omega, g), jm, v, bonds_of(products.couplings), *more)


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Where belief propagation went, for every network.

    Parameters
    ----------
    status : Tensor of int8, (samples,)
        A :class:`Status`: CONVERGED, PARAMAGNET (converged to m = 0), POLARISED (to |m| = 1,
        where no variance is left), CYCLE, CAP or DIVERGED. Only the first two are solutions.
    iterations : Tensor of int64, (samples,)
        Iterations made.
    residual : Tensor, (samples,), float64
        Last change of m, or of g relative to 1 + |g|.
    period : Tensor of int64, (samples,)
        Period of a cycle of the messages, 0 if there is none.
    messages : Messages
        The last ones, all finite.
    free_entropy, entropy : Tensor, (samples,), float64
        Phi and S = Phi - f m; estimates of log counts only where `converged`. Phi is 0 where
        it diverged.
    pair : Tensor, (samples, layers - 1)
        Overlap of consecutive layers, the mean of s^l_i s^{l+1}_i.
    """

    status: torch.Tensor
    iterations: torch.Tensor
    residual: torch.Tensor
    period: torch.Tensor
    messages: Messages
    free_entropy: torch.Tensor
    entropy: torch.Tensor
    pair: torch.Tensor

    @property
    def m(self) -> torch.Tensor:
        """Magnetisations, (samples, layers, n)."""
        return self.messages.m

    @property
    def converged(self) -> torch.Tensor:
        """Return in which networks the equations are solved."""
        return (self.status == Status.CONVERGED) | (self.status == Status.PARAMAGNET)

    def to_xarray(self) -> xr.Dataset:
        """Return them as a data set over sample, layer and neuron, magnetisations `m` among it.

        Examples
        --------
        >>> import rmsim as rs
        >>> beliefs = rs.belief_propagation(rs.Network(50, rs.Chain(1, jd=1.0)), samples=2)
        >>> dict(beliefs.to_xarray().m.sizes)
        {'sample': 2, 'layer': 1, 'neuron': 50}
        >>> again = Beliefs.from_xarray(beliefs.to_xarray())
        >>> bool((again.m == beliefs.m).all())
        True
        """
        import xarray as xr  # here, because workers import this module and do without

        values = {
            name: (dims, getattr(self, name).cpu().numpy(), {"long_name": meaning})
            for name, (dims, meaning) in _BELIEFS.items()
        }
        for name, meaning in _MESSAGES.items():
            tensor = getattr(self.messages, name).cpu().numpy()
            values[name] = (("sample", "layer", "neuron"), tensor, {"long_name": meaning})
        words = ", ".join(f"{int(status)} {status.label}" for status in Status)
        values["status"][2]["flags"] = words
        return xr.Dataset(values)

    @classmethod
    def from_xarray(cls, data: xr.Dataset) -> Beliefs:
        """Return the beliefs that :meth:`to_xarray` made into a data set, also after a file.

        Raises
        ------
        UnreadableDataError
            If it is another data set: naming what is missing or does not fit.
        """

        def tensor(name: str, dims: tuple[str, ...]) -> torch.Tensor:
            if data[name].dims != dims:
                raise ValueError(f"{name} is over {', '.join(map(str, data[name].dims))}")
            values = torch.tensor(data[name].values)
            if not bool(torch.isfinite(values).all()):
                raise ValueError(f"{name} has entries that are not finite")
            return values

        try:
            own = {name: tensor(name, dims) for name, (dims, _) in _BELIEFS.items()}
            for value in set(own["status"].tolist()):
                Status(value)
            sites = ("sample", "layer", "neuron")
            read = {name: tensor(name, sites) for name in _MESSAGES if name != "m"}
            return cls(**own, messages=Messages(**read))
        except MALFORMED as problem:
            raise UnreadableDataError(f"the data set is not beliefs: {problem}") from None


_BELIEFS = {
    "status": (("sample",), "how message passing ended"),
    "iterations": (("sample",), "iterations made"),
    "residual": (("sample",), "last change of the messages"),
    "period": (("sample",), "period of a cycle of the messages, 0 for none"),
    "free_entropy": (("sample",), "Phi (nat)"),
    "entropy": (("sample",), "S = Phi - f m (nat)"),
    "pair": (("sample", "bond"), "overlap of consecutive layers"),
}

_MESSAGES = {
    "m": "magnetisations, tanh h",
    "h": "half the log odds of the spins",
    "c": "field on the spins from the other sites",
    "g": "d log Z/d omega",
    "omega": "mean of the Gaussian field",
    "v": "variance of the Gaussian field",
    "pull": "field on the spins from outside",
}


def check_independent(network: Network) -> None:
    """Refuse networks whose couplings the equations do not hold for."""
    why = "for message passing, which takes J_ij and J_ji as independent"
    if network.symmetric and network.given is not None:
        raise InvalidInputError("couplings", "a symmetric matrix", f"asymmetric {why}")
    if network.symmetric:
        raise InvalidInputError("symmetric", True, f"False {why}")
    if network.rho != 1 and network.given is not None:
        share = f"a sparse matrix with {100 * network.rho:.3g} % of the entries"
        raise InvalidInputError("couplings", share, "a full matrix for message passing")
    if network.rho != 1:
        raise InvalidInputError("rho", network.rho, "1 for message passing")


def dense_couplings(
    network: Network | DenseChain,
    samples: int | range,
    seed: int,
    dtype: str | torch.dtype,
    device: str | torch.device,
) -> DenseChain:
    """Return the couplings that messages pass along: those given, or those of a network."""
    if not isinstance(network, Network):
        demand_couplings(network)
        network.check_independent("message passing")
        return network
    check_independent(network)
    chosen, number = sample_numbers(samples), checked_seed(seed)
    kind, place = choose_dtype(dtype), choose_device(device, len(chosen) * network.entries)
    return draw_dense(network, number, chosen, dtype=kind, device=place)


def belief_propagation(
    network: Network | DenseChain,
    *,
    samples: int | range = 1,
    seed: int = 0,
    start: Numbers | None = None,
    field: Numbers | None = None,
    external: Numbers | None = None,
    variances: str = "rank-one",
    max_iterations: int = 500,
    tolerance: float | None = None,
    dtype: str | torch.dtype = "float32",
    device: str | torch.device = "auto",
    sync_interval: int | None = None,
    compile: bool = False,
    callback: Callback | None = None,
) -> Beliefs:
    """Iterate AMP in every network until it converges, cycles, diverges, or the cap.

    Parameters
    ----------
    network : Network or DenseChain
        A network, whose couplings are drawn or your own (:meth:`Network.from_array`), or dense
        couplings (:func:`rmsim.draw`); J_ij and J_ji independent.
    samples : int or range
        How many disorder samples of a network, or which ones.
    seed : int
        Seed of the couplings of a network.
    start : array_like, Tensor or path of an .npy file, (samples, layers, n), optional
        Fields h to start from, 0 by default; without a field m = 0 is a solution, stable or not.
    field : array_like, Tensor or path, optional
        Field on the spins in the measure, weight e^{field s}, broadcastable to the start.
    external : array_like, Tensor or path, optional
        External field of the dynamics, broadcastable to the start.
    variances : str
        ``rank-one`` (two products per iteration) or ``exact`` (four, for small networks).
    max_iterations : int
        The cap.
    tolerance : float, optional
        Largest residual that counts as convergence: 1e-5 in float32, 1e-10 in float64.
    dtype, device
        Precision and place of the couplings of a network.
    sync_interval : int, optional
        Iterations between two readings of which networks have ended; 1 on a CPU, 16 on a GPU. The
        result does not depend on it: networks that end are frozen.
    compile : bool
        Let :func:`torch.compile` fuse the operations of an iteration, for long runs on a GPU.
    callback : callable, optional
        Called at every reading with the number of iterations and of networks still active.

    Examples
    --------
    >>> import rmsim as rs
    >>> import rmtheory as rt
    >>> chain = rt.Chain(1, jd=0.5)
    >>> beliefs = rs.belief_propagation(rs.Network(1000, chain), dtype="float64")
    >>> rs.Status(int(beliefs.status)).label  # m = 0: every spin is +1 in half the fixed points
    'paramagnet'
    >>> abs(float(beliefs.entropy) / 1000 - float(rt.entropy(chain))) < 0.02  # Bethe entropy
    True
    """
    couplings = dense_couplings(network, samples, seed, dtype, device)
    limit = checked_tolerance(tolerance, couplings.dtype)
    cap = checks.integer("max_iterations", max_iterations, 1)
    h, pull, shift = fitted_fields(couplings, start, field, external)
    products = Products(couplings, variances, compile=compile)
    run = _Amp(products, first_messages(h), pull, shift, limit)
    run.run(cap, checked_sync_interval(couplings.device, sync_interval), callback)
    final = run.active.final
    value = free_entropy(products, final, pull, shift)
    value = value.masked_fill(run.status == Status.DIVERGED, 0.0)  # its squares may overflow
    return beliefs_of(
        couplings,
        run.status,
        run.iterations,
        run.residual,
        run.period,
        final,
        value,
        (pull, shift),
        limit,
    )


def beliefs_of(
    couplings: DenseChain,
    status: torch.Tensor,
    iterations: torch.Tensor,
    residual: torch.Tensor,
    period: torch.Tensor,
    final: Messages,
    value: torch.Tensor,
    fields: tuple[torch.Tensor, torch.Tensor | None],
    limit: float,
) -> Beliefs:
    """Return the beliefs at the last messages, whose free entropy is `value`.

    A solution without magnetisation is called PARAMAGNET, one without variance POLARISED.
    """
    pull, shift = fields
    entropy = value - (pull.double() * final.m.double()).sum((-1, -2))
    shifted = final.omega if shift is None else final.omega + shift
    pair = sum_site(final.c + pull, shifted, final.v, bonds_of(couplings)).pair.mean(-1)
    converged = status == Status.CONVERGED
    certain = converged & (final.v.flatten(1).amax(1) < LEAST_VARIANCE)
    unmagnetised = final.m.flatten(1).abs().amax(1) < SMALL * limit
    status = status.masked_fill(certain, int(Status.POLARISED))
    status = status.masked_fill(converged & unmagnetised, int(Status.PARAMAGNET))
    return Beliefs(status, iterations, residual, period, final, value, entropy, pair)


def fitted_fields(
    couplings: DenseChain,
    start: Numbers | None,
    field: Numbers | None,
    external: Numbers | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return start, field on the spins (0 by default) and external field, each of full shape."""
    shape = (couplings.samples, couplings.layers, couplings.n)
    zero = torch.zeros(shape, dtype=couplings.dtype, device=couplings.device)
    h = zero if start is None else fitted("start", start, zero)
    pull = zero if field is None else fitted("field", field, zero)
    return h, pull, None if external is None else fitted("external", external, zero)


def fitted(name: str, value: Numbers, like: torch.Tensor) -> torch.Tensor:
    """Return a field expanded to the shape (samples, layers, n) of `like`, in its type."""
    value = tensor_of(name, value)
    try:
        whole = value.to(dtype=like.dtype, device=like.device).expand(like.shape)
    except RuntimeError:
        allowed = f"broadcastable to {tuple(like.shape)}"
        raise InvalidInputError(name, str(tuple(value.shape)), allowed) from None
    if not bool(whole.isfinite().all()):
        raise InvalidInputError(name, "a number that is not finite", "finite")
    return whole


def checked_tolerance(tolerance: float | None, dtype: torch.dtype) -> float:
    """Return the tolerance, or that of the type."""
    if tolerance is None:
        return TOLERANCE[dtype]
    value = float(checks.exact_real("tolerance", tolerance))
    if not 0 < value < 1:
        raise InvalidInputError("tolerance", tolerance, "above 0 and below 1")
    return value


class _Amp(Search[Messages]):
    """AMP in all networks: how each ended is filled in as it does."""

    def __init__(
        self,
        products: Products,
        messages: Messages,
        pull: torch.Tensor,
        external: torch.Tensor | None,
        limit: float,
    ) -> None:
        self.products, self.pull, self.external, self.limit = products, pull, external, limit
        self.active: ActiveSet[Messages] = ActiveSet(messages)
        samples, device = len(messages.h), messages.h.device
        self.status = torch.full((samples,), int(Status.CAP), dtype=torch.int8, device=device)
        self.iterations, self.period = torch.zeros(
            (2, samples), dtype=torch.int64, device=device
        ).unbind(0)
        self.residual = torch.zeros(samples, dtype=torch.float64, device=device)
        self._anchor, self._anchored = messages, 0

    def advance(self, iteration: int, sync: bool) -> None:
        """Iterate once, note where the networks are, and freeze those that have ended."""
        active = self.active
        old = active.here
        shift = None if self.external is None else active.of(self.external)
        new = step(self.products, old, active.of(self.pull), shift, active=active.networks)
        running = ~active.ended
        fine = active.take(new, active.ended)
        change = _change(old, active.here)
        done = running & fine & (change < self.limit)
        cyclic = running & fine & (_change(self._anchor, active.here) < self.limit)
        cyclic &= change > 10 * self.limit
        lost = running & ~fine
        active.write(self.iterations, running, iteration)
        active.write(self.residual, running & fine, change)
        active.write(self.period, cyclic, iteration - self._anchored)
        for mask, status in (
            (done, Status.CONVERGED),
            (cyclic, Status.CYCLE),
            (lost, Status.DIVERGED),
        ):
            active.end(self.status, mask, status)
        if iteration & (iteration - 1) == 0:  # Brent: remember the powers of two
            self._anchor, self._anchored = active.here, iteration

    def keep(self, stay: Index) -> None:
        """Remember the messages of the networks that stay only."""
        self._anchor = self._anchor.pick(stay)


def _change(old: Messages, new: Messages) -> torch.Tensor:
    """Return the largest change of m, or of g relative to 1 + |g|, in float64."""
    m = (new.m - old.m).flatten(1).abs().amax(1)
    g = ((new.g - old.g).abs() / (1 + new.g.abs())).flatten(1).amax(1)
    return torch.maximum(m, g).double()
