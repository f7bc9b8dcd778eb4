"""Pages of the API: what is public, the front doors first, then subpackages and modules.

Public is what a front door or a subpackage lists in ``__all__``. Every object has one entry: in the
front door if it is exported there, otherwise in its subpackage. References by the module in which
an object is defined, as docstrings write them, lead to that entry.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any

from sphinx.pycode import ModuleAnalyzer
from sphinx.util.logging import getLogger

_LOG = getLogger(__name__)

DOORS = ("rmtheory", "rmsim")

#: Modules that are public as such, beside the subpackages.
MODULES = (
    "rmtheory.base.statistics",
    "rmtheory.plots",
    "rmsim.tensors",
    "rmsim.studies.compare",
    "rmsim.studies.plots",
)


def public_packages() -> list[str]:
    """Return the front doors, their subpackages except the command lines, and public modules."""
    found = list(DOORS)
    for door in DOORS:
        package = importlib.import_module(door)
        found += [
            one.name
            for one in pkgutil.iter_modules(package.__path__, door + ".")
            if one.ispkg and not one.name.endswith(".cli")
        ]
    return sorted(found + list(MODULES), key=lambda name: (name not in DOORS, name))


def _same(one: object, two: object) -> bool:
    return one is two and (inspect.isclass(one) or _is_function(one))


def _is_function(value: object) -> bool:
    """Whether it is a function, or one whose results are kept (functools.cache)."""
    return inspect.isfunction(value) or inspect.isfunction(getattr(value, "__wrapped__", None))


def entries() -> dict[str, dict[str, str]]:
    """Return for every public package: name -> where its entry is, as PACKAGE.NAME."""
    found: dict[str, dict[str, str]] = {}
    known: list[tuple[object, str]] = []
    for package in public_packages():
        module = importlib.import_module(package)
        found[package] = {}
        for name in module.__all__:
            value = getattr(module, name)
            place = next((path for other, path in known if _same(other, value)), None)
            if place is None:
                place = f"{package}.{name}"
                known.append((value, place))
            found[package][name] = place
    return found


def _entry(place: str, value: object) -> list[str]:
    """Return the directive of one object; constants have the comment beside their definition."""
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        return [f".. {kind}:: {place}", ""]
    if _is_function(value):
        return [f".. autofunction:: {place}", ""]
    package, _, name = place.rpartition(".")
    head = [f".. py:data:: {name}", f"   :module: {package}", ""]
    return [*head, *(f"   {line}" for line in _comment(place, value)), ""]


def _comment(place: str, value: object) -> list[str]:
    package, _, name = place.rpartition(".")
    for module in sorted(sys.modules):
        if module.startswith(package) and vars(sys.modules[module]).get(name) is value:
            found = ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name))
            if found:
                return found
    return []


def _page(package: str, names: dict[str, str]) -> str:
    module = importlib.import_module(package)
    lines = [package, "=" * len(package), "", f".. automodule:: {package}", "   :no-members:", ""]
    elsewhere = [place for name, place in names.items() if place != f"{package}.{name}"]
    if elsewhere:
        listed = ", ".join(f":py:obj:`{place}`" for place in elsewhere)
        lines += [f"Also here: {listed}.", ""]
    for name, place in names.items():
        if place == f"{package}.{name}":
            lines += _entry(place, getattr(module, name))
    return "\n".join(lines)


def _write(app: Any) -> None:
    folder = Path(app.srcdir, "api", "generated")
    folder.mkdir(exist_ok=True)
    pages = {f"{package}.rst": _page(package, names) for package, names in entries().items()}
    for old in folder.iterdir():
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def _aliases() -> dict[str, str]:
    """Return where objects are defined or exported -> where their entry is."""
    found = {}
    for package, names in entries().items():
        module = importlib.import_module(package)
        for name, place in names.items():
            found[f"{package}.{name}"] = place
            value = getattr(module, name)
            if isinstance(value, type) or _is_function(value):
                found[f"{value.__module__}.{value.__qualname__}"] = place
    return found


def _resolve(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Point a reference that names the defining module to the entry of the object."""
    if node.get("refdomain") != "py":
        return None
    target = node.get("reftarget", "").lstrip("~.")
    aliases = env.public_aliases if hasattr(env, "public_aliases") else _aliases()
    env.public_aliases = aliases
    owner, _, member = target.rpartition(".")
    place = aliases.get(target)
    if place is None and owner in aliases:
        place = f"{aliases[owner]}.{member}"
    if place is None and node.get("py:module"):
        place = aliases.get(f"{node['py:module']}.{target}")
    if place is None or place == target:
        return None
    domain = env.get_domain("py")
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], place, node, contnode
    )


def _check(_app: Any, env: Any) -> None:
    """Warn of public names without an entry: the pages are built with warnings as errors."""
    there = env.get_domain("py").objects
    for package, names in entries().items():
        for name, place in names.items():
            if place not in there:
                _LOG.warning("%s.%s is public and has no entry in the API pages", package, name)


_BACK = re.compile(r'(href="[^"]*api/generated/)([\w.]+)(\.html#)([\w.]+)"')


def _mend_back_links(
    app: Any, name: str, _template: str, context: dict[str, Any], _tree: Any
) -> None:
    """Let pages of source lead back to entries: viewcode knows one package per source file."""
    if not name.startswith("_modules/") or "body" not in context:
        return
    there = app.env.get_domain("py").objects

    def mended(link: re.Match[str]) -> str:
        start, package, middle, place = link.groups()
        if place not in there:
            parts = place.split(".")
            tails = (".".join(parts[k:]) for k in range(len(parts)))
            place = next((f"{package}.{t}" for t in tails if f"{package}.{t}" in there), place)
        return f'{start}{package}{middle}{place}"'

    context["body"] = _BACK.sub(mended, context["body"])


def setup(app: Any) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("html-page-context", _mend_back_links)
    app.connect("env-check-consistency", _check)
    app.connect("builder-inited", _write)
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
