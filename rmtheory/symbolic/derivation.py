"""A derivation, and how it is shown: as text to read, LaTeX to paste, or a Python module to run.

A derivation holds equations with a one-line reason each, the identities proved on the way, and the
formulas that can be evaluated. The Python module needs only the standard library.
"""

from __future__ import annotations

import math
import re
import textwrap
from dataclasses import dataclass

import sympy as sp

from rmtheory.base.errors import InvalidInputError
from rmtheory.symbolic.definitions import Expr, F, Matrix, P, n

# The parts of a derivation.


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
    source : str
        What it is derived from.
    """

    name: str
    layers: int | float
    steps: tuple[Step, ...]
    checks: tuple[Check, ...] = ()
    formulas: tuple[Formula, ...] = ()
    code: str = ""
    source: str = "the definition of the count"


# As a Python module.

_HELPERS = '''
def P(x):
    """Normal cumulative distribution, the H(-x) of the paper."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))
'''

_DENSITY = '''
def n(x):
    """Normal density."""
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
'''


def python_module(derivation: Derivation) -> str:
    """Return the source of a self-contained module with one function a formula.

    Examples
    --------
    >>> from rmtheory.symbolic import derive
    >>> namespace = {}
    >>> exec(python_module(derive("annealed", 1)), namespace)
    >>> round(namespace["annealed_entropy"](0.5), 12)
    0.324200765271
    """
    layers = "inf" if math.isinf(derivation.layers) else str(derivation.layers)
    command = f"rmtheory derive {derivation.name} --layers {layers} --format python"
    has_density = any(f.expression.has(n) for f in derivation.formulas)
    modules = ["itertools"] if "itertools." in derivation.code else []
    parts = [
        f'"""Derived by sympy from {derivation.source}.\n\nWritten by: {command}\n"""\n',
        "".join(f"import {name}\n" for name in (*modules, "math")),
        _HELPERS,
        _DENSITY if has_density else "",
        *("\n" + function(formula) for formula in derivation.formulas),
        derivation.code,
    ]
    # Two blank lines between definitions, as in the style guide of Python.
    return "\n".join(part for part in parts if part).replace("\n\n\n\n", "\n\n\n")


def function(formula: Formula) -> str:
    """Return the source of one function; common subexpressions become local names."""
    names: dict[Expr, Expr] = {}
    unpacked: list[str] = []
    for name, symbols in formula.arguments:
        if isinstance(symbols, tuple):
            locals_ = [sp.Symbol(f"{name}_{k}") for k in range(1, len(symbols) + 1)]
            unpacked.append(f"({', '.join(map(str, locals_))},) = {name}")
            names |= dict(zip(symbols, locals_, strict=True))
        else:
            names[symbols] = sp.Symbol(name)
    first_default = len(formula.arguments) - formula.defaults
    signature = ", ".join(
        name if k < first_default else f"{name}=0.0"
        for k, (name, _) in enumerate(formula.arguments)
    )
    expression = formula.expression.subs(names, simultaneous=True)
    common, (reduced,) = sp.cse([expression], symbols=sp.numbered_symbols("x"))
    body = [
        f'"""{formula.doc}"""',
        *unpacked,
        *(f"{symbol} = {_code(value)}" for symbol, value in common),
        f"return {_value(reduced)}",
    ]
    return f"def {formula.name}({signature}):\n" + textwrap.indent("\n".join(body), "    ") + "\n"


def _value(expression: Expr | Matrix) -> str:
    if isinstance(expression, sp.MatrixBase):
        rows = (", ".join(_code(x) for x in row) for row in expression.tolist())
        return "(" + ", ".join(f"({row},)" for row in rows) + ",)"
    return _code(expression)


def _code(expression: Expr) -> str:
    known = {kind.__name__: kind.__name__ for kind in (P, n, F)}
    return str(sp.pycode(expression, user_functions=known, fully_qualified_modules=True))


# As text and as LaTeX.

FORMATS = ("latex", "text", "python")

_WIDTH = 100

#: An equation whose LaTeX is longer than this is broken between its terms.
_LONG = 110


def render(derivation: Derivation, format: str = "text") -> str:
    """Return `derivation` in one of the formats latex, text, python.

    Examples
    --------
    >>> from rmtheory.symbolic import derive
    >>> print(render(derive("annealed", 1), "text").splitlines()[0])
    annealed, L = 1
    """
    if format == "latex":
        return _latex(derivation)
    if format == "text":
        return _text(derivation)
    if format == "python":
        return python_module(derivation)
    raise InvalidInputError("format", format, "one of " + ", ".join(FORMATS))


def heading(derivation: Derivation) -> str:
    """Return the topic and the number of layers."""
    layers = "infinity" if math.isinf(derivation.layers) else str(derivation.layers)
    return f"{derivation.name}, L = {layers}"


def _text(derivation: Derivation) -> str:
    lines = [heading(derivation), ""]
    for number, step in enumerate(derivation.steps, start=1):
        reason = step.explanation.replace("`", "")
        lines += textwrap.wrap(f"({number}) {step.title}: {reason}.", _WIDTH)
        # sympy pads the columns of a matrix, which wrapping would make meaningless.
        right = re.sub(r"\s+", " ", sp.sstr(step.expression)).replace("[ ", "[")
        equation = f"{sp.sstr(_left(step))} = {right}"
        lines += textwrap.wrap(
            equation,
            _WIDTH,
            initial_indent="    ",
            subsequent_indent="      ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines.append("")
    if derivation.checks:
        lines.append("Shown exactly, by algebra:")
        lines += [f"  [{_verdict(c.holds)}] {c.claim}" for c in derivation.checks]
    return "\n".join(lines) + "\n"


def _latex(derivation: Derivation) -> str:
    lines = ["% needs amsmath", rf"\subsection*{{{_escape(heading(derivation))}}}"]
    for step in derivation.steps:
        lines.append(rf"\paragraph{{{_prose(step.title)}.}} {_prose(step.explanation)}.")
        lines += [r"\begin{align}", *_equation(step), r"\end{align}"]
    if derivation.checks:
        lines += [r"\paragraph{Shown exactly, by algebra.}", r"\begin{itemize}"]
        lines += [rf"\item {_escape(c.claim)}: {_verdict(c.holds)}." for c in derivation.checks]
        lines.append(r"\end{itemize}")
    return "\n".join(lines) + "\n"


def _equation(step: Step) -> list[str]:
    left, right = _tex(_left(step)), _tex(step.expression)
    factor, terms = _terms(step.expression)
    if len(right) <= _LONG or len(terms) < 2:
        return [rf"  {left} &= {right}"]
    opening, closing = (rf"{_tex(factor)} \Big[ ", r" \Big]") if factor != 1 else ("", "")
    lines, line = [], rf"  {left} &= {opening}{_tex(terms[0])}"
    for term in terms[1:]:
        body = _tex(term)
        signed = f" {body}" if body.startswith("-") else f" + {body}"
        if len(line) + len(signed) > _LONG:
            lines.append(line)
            line = r"  &\quad"
        line += signed
    lines.append(line + closing)
    return [line + r" \nonumber \\" for line in lines[:-1]] + [lines[-1]]


def _terms(expression: Expr | Matrix) -> tuple[Expr, tuple[Expr, ...]]:
    """Return a numerical factor and the terms of the sum it multiplies, in printing order."""
    if isinstance(expression, sp.Add):
        return sp.S.One, expression.as_ordered_terms()
    if isinstance(expression, sp.Mul) and len(expression.args) == 2:
        factor, rest = expression.args
        if factor.is_Number and isinstance(rest, sp.Add):
            return factor, rest.as_ordered_terms()
    return sp.S.One, (expression,)


def _tex(expression: Expr | Matrix) -> str:
    hatted = re.sub(r"\bqhat\b", r"\\hat{q}", sp.latex(expression))
    return hatted.replace("S_{oo}", r"S_{\infty}")


def _left(step: Step) -> Expr:
    return sp.Symbol(step.symbol) if isinstance(step.symbol, str) else step.symbol


def _verdict(holds: bool) -> str:
    return "yes" if holds else "NO"


def _escape(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    special |= {c: "\\" + c for c in "_&%#${}"}
    special |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
    return "".join(special.get(c, c) for c in text)


def _prose(text: str) -> str:
    """Escape words; set what stands between backticks in typewriter type."""
    parts = [_escape(part) for part in text.split("`")]
    return "".join(rf"\texttt{{{p}}}" if k % 2 else p for k, p in enumerate(parts))
