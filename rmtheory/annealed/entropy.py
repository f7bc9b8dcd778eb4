"""The annealed entropy and the exact mean count, to any number of digits (paper, SM-A)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

from rmtheory import checks
from rmtheory.annealed import routes
from rmtheory.arithmetic import Arithmetic, evaluate
from rmtheory.chain import Chain
from rmtheory.errors import InvalidInputError
from rmtheory.estimate import Estimate, Tier

Route = Literal["eigenvalues", "transfer-2x2", "transfer-4x4", "brute-force"]

#: Brute force visits 2^L columns; the 4 x 4 recursion takes L steps.
_MOST_LAYERS: dict[Route, int] = {"brute-force": 20, "transfer-4x4": 100_000}

_METHOD: dict[Route, str] = {
    "eigenvalues": "closed form by eigenvalues",
    "transfer-2x2": "2x2 transfer matrix",
    "transfer-4x4": "4x4 transfer matrix",
    "brute-force": "sum over all columns",
}


def log_partition(
    chain: Chain, arithmetic: Arithmetic, route: Route = "eigenvalues", n: int | None = None
) -> Any:
    """Return log z (log mu_+ if L is infinite) in the given arithmetic.

    With `n` neurons a layer the fields have variance (n-1)/n instead of 1: the couplings are
    divided by sigma_n = sqrt((n-1)/n).
    """
    couplings = [arithmetic.number(x) for x in chain.exact]
    if n is not None:
        sigma = arithmetic.sqrt(arithmetic.number(n - 1) / n)
        couplings = [x / sigma for x in couplings]
    jd, lam_left, lam_right = couplings
    if math.isinf(chain.layers):
        return routes.log_leading_eigenvalue(jd, lam_left, lam_right, arithmetic)
    layers = chain.finite_layers
    if route == "eigenvalues":
        return arithmetic.log(routes.eigenvalues(layers, jd, lam_left, lam_right, arithmetic))
    summation = {
        "brute-force": routes.brute_force,
        "transfer-4x4": routes.transfer_4x4,
        "transfer-2x2": routes.transfer_2x2,
    }[route]
    return arithmetic.log(summation(layers, jd, lam_left, lam_right, arithmetic.P))


def entropy(
    chain: Chain,
    digits: int = 15,
    *,
    route: Route = "eigenvalues",
    tier: Tier | None = None,
) -> Estimate:
    r"""Annealed entropy per neuron of the fixed points, S_a = (1/L) log z.

    Parameters
    ----------
    chain : Chain
        The model; any number of layers, infinity included.
    digits : int
        Significant digits wanted.
    route : {"eigenvalues", "transfer-2x2", "transfer-4x4", "brute-force"}
        Which of the four equivalent expressions to evaluate.
    tier : Tier, optional
        ``certified`` by balls (needs python-flint; the default where it is installed) or
        ``verified`` by two routes in mpmath.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> print(entropy(Chain(2, jd="0.3", lam_left="0.7", lam_right="0.4"), digits=30))
    0.232706065291064486117149244354 ± 6e-31
    """
    digits = checks.digits(digits)
    _check_route(chain, route)
    if math.isinf(chain.layers):
        method, second = "log of the leading eigenvalue", None
    else:
        method = _METHOD[route]
        second = _per_layer(chain, "eigenvalues" if route == "transfer-2x2" else "transfer-2x2")
    return evaluate(_per_layer(chain, route), second, digits, method, tier)


def log_mean_count(chain: Chain, n: int, digits: int = 15, *, tier: Tier | None = None) -> Estimate:
    """Logarithm of the mean number of fixed points with `n` neurons a layer, N log z(sigma_N)."""
    return _mean(chain, n, digits, tier, logarithm=True)


def mean_count(chain: Chain, n: int, digits: int = 15, *, tier: Tier | None = None) -> Estimate:
    """Mean number of fixed points over dense Gaussian couplings, `n` neurons a layer.

    It is z^N with (J_D, lambda)/sigma_N, sigma_N^2 = (N-1)/N, exactly and for every N >= 2.

    Examples
    --------
    >>> from rmtheory import Chain
    >>> print(mean_count(Chain(1, 0.4), n=16, digits=6))
    85.4494 ± 6e-5
    """
    return _mean(chain, n, digits, tier, logarithm=False)


def _mean(chain: Chain, n: int, digits: int, tier: Tier | None, logarithm: bool) -> Estimate:
    digits = checks.digits(digits)
    size = checks.integer("n", n, 2, 10**15)
    if math.isinf(chain.layers):
        raise InvalidInputError("layers", "inf", "finite for a mean count")

    def quantity(route: Route) -> Callable[[Arithmetic], Any]:
        def formula(arithmetic: Arithmetic) -> Any:
            log_mean = size * log_partition(chain, arithmetic, route, size)
            return log_mean if logarithm else arithmetic.exp(log_mean)

        return formula

    method = "closed form by eigenvalues at finite N"
    return evaluate(quantity("eigenvalues"), quantity("transfer-2x2"), digits, method, tier)


def _per_layer(chain: Chain, route: Route) -> Callable[[Arithmetic], Any]:
    def formula(arithmetic: Arithmetic) -> Any:
        log_z = log_partition(chain, arithmetic, route)
        return log_z if math.isinf(chain.layers) else log_z / chain.finite_layers

    return formula


def _check_route(chain: Chain, route: Route) -> None:
    if route not in get_args(Route):
        raise InvalidInputError("route", route, "one of " + ", ".join(get_args(Route)))
    if math.isinf(chain.layers):
        if route != "eigenvalues":
            raise InvalidInputError("route", route, "eigenvalues for infinitely many layers")
    elif chain.layers > _MOST_LAYERS.get(route, math.inf):
        raise InvalidInputError(
            "layers", chain.layers, f"at most {_MOST_LAYERS[route]} with route {route}"
        )
