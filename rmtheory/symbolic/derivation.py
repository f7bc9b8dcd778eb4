"""A derivation: equations with a one-line reason each, what was proved, what can be computed."""

from __future__ import annotations

from dataclasses import dataclass

from rmtheory.symbolic.definitions import Expr, Matrix


@dataclass(frozen=True)
class Step:
    """One equation, ``symbol = expression``.

    Parameters
    ----------
    title : str
        What this step is, in a few words.
    explanation : str
        Why it holds, one line; names and formulas between backticks.
    symbol : str or sympy expression
        Left-hand side.
    expression : sympy expression or matrix
        Right-hand side.
    """

    title: str
    explanation: str
    symbol: str | Expr
    expression: Expr | Matrix


@dataclass(frozen=True)
class Check:
    """A claim of identity that was put to the exact test, and the verdict."""

    claim: str
    holds: bool


@dataclass(frozen=True)
class Formula:
    """A result to be printed as a Python function.

    Parameters
    ----------
    name : str
        Name of the function.
    doc : str
        Its docstring, one line.
    arguments : tuple of (str, symbol or tuple of symbols)
        Arguments and the symbols they set; a tuple of symbols is unpacked from a sequence.
    expression : sympy expression or matrix
        The value; a matrix becomes a tuple of rows.
    defaults : int
        How many of the last arguments default to 0.0.
    """

    name: str
    doc: str
    arguments: tuple[tuple[str, Expr | tuple[Expr, ...]], ...]
    expression: Expr | Matrix
    defaults: int = 0


@dataclass(frozen=True)
class Derivation:
    """What :func:`rmtheory.symbolic.derive` returns.

    Parameters
    ----------
    name : str
        The topic.
    layers : int or math.inf
        Number of layers L.
    steps : tuple of Step
        The equations in order.
    checks : tuple of Check
        Identities shown exactly while deriving.
    formulas : tuple of Formula
        Functions of the Python module.
    code : str
        Python source appended to that module, for what is not a formula (an integral).
    """

    name: str
    layers: int | float
    steps: tuple[Step, ...]
    checks: tuple[Check, ...] = ()
    formulas: tuple[Formula, ...] = ()
    code: str = ""
