"""A derivation as text to read, LaTeX to paste, or a Python module to run."""

from __future__ import annotations

import math
import re
import textwrap

import sympy as sp

from rmtheory.errors import InvalidInputError
from rmtheory.symbolic.definitions import Expr, Matrix
from rmtheory.symbolic.derivation import Derivation, Step
from rmtheory.symbolic.python_module import python_module

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
