"""What `make` installs: every dependency on every platform is pinned, every file has a checksum."""

import re
import tomllib
from importlib.machinery import SourceFileLoader
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def root() -> Path:
    """The repository, wherever below tests/ this file is."""
    return next(p for p in Path(__file__).resolve().parents if (p / "constraints.txt").exists())


def pins(text: str) -> dict[str, str]:
    """Name -> version of every line that pins one."""
    result = re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE)
    return {canonicalize_name(name): version for name, version in result}


def test_every_pin_but_torch_has_checksums() -> None:
    wanted = pins((root() / "constraints.txt").read_text())
    assert wanted.pop("torch")
    text = (root() / ".ci" / "hashes.txt").read_text()
    assert pins(text) == wanted
    for block in re.split(r"\n(?=\w)", text)[1:]:
        lines = block.splitlines()
        assert len(lines) > 1, lines[0]
        for line in lines[1:]:
            assert re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line), line


def test_every_dependency_of_every_platform_is_pinned() -> None:
    """Followed through the metadata of what is installed; torch brings its own platform's."""
    project = tomllib.loads((root() / "pyproject.toml").read_text())["project"]
    wanted = pins((root() / "constraints.txt").read_text())
    systems = {
        "linux": ("Linux", "posix"),
        "darwin": ("Darwin", "posix"),
        "win32": ("Windows", "nt"),
    }
    environments = [
        {
            **default_environment(),
            "python_version": python,
            "python_full_version": f"{python}.0",
            "sys_platform": platform,
            "platform_system": system,
            "os_name": name,
        }
        for python in ("3.11", "3.12", "3.13", "3.14")
        for platform, (system, name) in systems.items()
    ]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    ahead = [Requirement(line) for line in [*project["dependencies"], *extras, "hatchling"]]
    seen: set[tuple[str, frozenset[str]]] = set()
    while ahead:
        here = ahead.pop()
        key = (canonicalize_name(here.name), frozenset(here.extras))
        if key in seen:
            continue
        seen.add(key)
        assert key[0] in wanted, here
        assert here.specifier.contains(wanted[key[0]], prereleases=True), here
        try:
            needs = distribution(key[0]).requires or []
        except PackageNotFoundError:  # of another platform, or of an extra that is not installed
            continue
        for further in map(Requirement, needs if key[0] != "torch" else []):
            marker = further.marker
            if marker is None or any(
                marker.evaluate({**environment, "extra": extra})
                for environment in environments
                for extra in here.extras or {""}
            ):
                ahead.append(further)


def script(name: str) -> ModuleType:
    """Load a script of .ci, which has no suffix."""
    loader = SourceFileLoader(name, str(root() / ".ci" / name))
    spec = spec_from_file_location(name, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_checksums_of_one_version_from_a_page_of_the_index() -> None:
    page = "".join(
        f'<a href="https://x/y/{file}#sha256={digit * 64}">{file}</a><br/>'
        for digit, file in zip(
            "abcdef",
            (
                "Some_Name-1.2-cp311-cp311-win_amd64.whl",
                "some.name-1.2.tar.gz",
                "some_name-1.2.1-py3-none-any.whl",
                "some_name-11.2-py3-none-any.whl",
                "some_name-1.2-py3.11.egg",
                "some_name_more-1.2.tar.gz",
            ),
            strict=True,
        )
    )
    assert script("pins").hashes_of(page, "some-name", "1.2") == ["a" * 64, "b" * 64]
