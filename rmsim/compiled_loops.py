"""Loops compiled to machine code, and the threads that run them side by side.

:func:`compiled` is the one decorator of every hot loop that is not a tensor product,
:func:`compiled_part` that of what only compiled loops call, in any file. The sign of the dynamics,
:func:`rmsim.tensors.is_up`, may be called in them: the rule for a tie is stated there alone.

**Machine code is kept on disk** beside the source and built at the first call only. It is built
again if the file of the function changes, or the source of anything compiled that it contains. Of
several processes that need the same code at once, one builds it and the others wait for it.

**Building takes seconds**, and some ways to write a loop take many times longer than others. An
assignment to a slice (``a[:] = b``) costs 3 s, since numba then builds the message of a failure;
arrays inside tuples cost a tenth of a second each, for their references are counted. So copy by a
loop, and give many arrays by their addresses (:mod:`rmsim.compiled_vectors`).

The loops hold no Python object and release the interpreter lock, so that threads run them side by
side: as many as torch would use, and ``torch.set_num_threads`` governs all of the simulator. Unlike
the parallel loops of numba these may be entered from several threads at once, as on a Dask worker.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, BinaryIO, ParamSpec, TypeVar, cast

import numba
import numpy as np
import torch
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.runtime.nrt import rtsys as _rtsys
from numba.core.typed_passes import NopythonRewrites
from numba.core.types import unliteral
from numba.core.untyped_passes import InlineClosureLikes
from numba.extending import register_jitable

from rmsim.tensors import is_up
from rmtheory.runtime.files import wait_for_lock

P = ParamSpec("P")
R = TypeVar("R")

register_jitable(is_up)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` by numba; rounding stays that of IEEE 754 (no fast-math)."""
    dispatcher: Any = numba.njit(nogil=True, pipeline_class=_LoopCompiler)(function)
    dispatcher._cache = MachineCode(function)
    return cast(Callable[P, R], dispatcher)


def compiled_part(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only compiled functions call.

    It has no entry from Python, whose code for many arrays takes longer to build than the loop, and
    no machine code of its own: it is optimised and kept on disk as part of its callers alone.
    Numbers that are known when a caller is built make no part of their own for their values.
    """
    options: Any = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher: Any = numba.njit(pipeline_class=_PartCompiler, **options)(function)
    template = dispatcher.get_call_template
    dispatcher.get_call_template = lambda arguments, named: template(
        tuple(map(_kind, arguments)), {name: _kind(x) for name, x in named.items()}
    )
    return cast(Callable[P, R], dispatcher)


_NumbaCompiler: Any = Compiler  # these carry no types
_NumbaLibrary: Any = JITCodeLibrary
_kind: Any = unliteral
rtsys: Any = _rtsys


class _LoopCompiler(_NumbaCompiler):  # type: ignore[misc]
    """Numba's compiler without two of its passes: loops have no closures and no array expressions.

    They take a fifteenth of the time to build.
    """

    def define_pipelines(self) -> Any:
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            kept = [each for each in pipeline.passes if each[0] not in _NOT_NEEDED]
            pipeline.passes[:] = kept
        return pipelines


_NOT_NEEDED = (InlineClosureLikes, NopythonRewrites)


class _PartCompiler(_LoopCompiler):
    """The same, for a function that has no machine code of its own."""

    def define_pipelines(self) -> Any:
        name = self.state.func_id.func_qualname
        self.state.library = _PartLibrary(self.state.targetctx.codegen(), name)
        return super().define_pipelines()


class _PartLibrary(_NumbaLibrary):  # type: ignore[misc]
    """The code of a part in the language of LLVM, to be linked into its callers.

    Numba itself optimises a function and builds its machine code before it links the optimised code
    into each caller and optimises that: of a loop in 25 parts, a fifth of the time to build it.
    """

    def finalize(self) -> None:
        """Link what this part calls."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def _optimize_functions(self, module: Any) -> None:
        """Leave that to the callers, too."""
        module.data_layout = self._codegen._data_layout

    @property
    def codegen(self) -> Any:
        """Return what numba gives the Python objects of a compiled function; a part has none."""
        return self

    def set_env(self, name: str, env: object) -> None:
        """Do nothing: there is no machine code that could need them."""


# Machine code on disk.

#: Seconds to wait for another process that builds the same code; after that both do.
_PATIENCE = 120.0


_NumbaCache: Any = FunctionCache  # carries no types


class MachineCode(_NumbaCache):  # type: ignore[misc]
    """The machine code of one function on disk.

    Numba's own cache knows the file of a function only. This one knows what the function calls, and
    lets one process build while others wait.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        self._lock: BinaryIO | None = None
        self._sources: str | None = None

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        if self._sources is None:  # at the first call: what it calls is defined by then
            self._sources = sources_of(self._py_func)
        return (*super()._index_key(sig, codegen), self._sources)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code; None, and the right to build it, if there is none."""
        self._release()
        code = self._stored(sig, target_context)
        if code is None:
            self._acquire()
            code = self._stored(sig, target_context)
            if code is not None:
                self._release()
        return code

    def _stored(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code on disk; None if there is none.

        Numba would first import all that builds code: half a second in every process.
        """
        rtsys.initialize(target_context)  # the memory of its arrays, which code on disk needs
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the machine code."""
        try:
            super().save_overload(sig, data)
        finally:
            self._release()

    def _acquire(self) -> None:
        """Wait until no other process builds this function; not for ever."""
        base = Path(self.cache_path) / f"{self._impl.filename_base}.lock"
        try:
            self._impl.locator.ensure_cache_path()
            self._lock = base.open("wb")
        except OSError:  # nothing can be kept here, so nothing is worth waiting for
            return
        # Without locks, as on Windows, two processes may build the same code.
        wait_for_lock(self._lock, _PATIENCE)

    def _release(self) -> None:
        """Let the others go on; a process that ends does so by itself."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def sources_of(function: Callable[..., object]) -> str:
    """Return a hash of all that the machine code of `function` is made of besides its own file.

    These are the files of the compiled functions that it calls, and of those that they call, and
    the numbers that they take from their modules.
    """
    files: set[str] = set()
    numbers: list[str] = []
    seen: set[int] = set()
    waiting: list[Any] = [function]
    while waiting:
        here = waiting.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        files.add(here.__code__.co_filename)
        for name, value in _globals_of(here):
            body = getattr(value, "py_func", None) or getattr(value, "_defn", None)
            if body is not None:
                waiting.append(body)
            elif isinstance(value, FunctionType):  # as the sign is, which tensors have too
                numbers.append(f"{name}={value.__code__.co_code!r}{value.__code__.co_consts!r}")
            elif isinstance(value, bool | int | float | tuple | np.generic):
                numbers.append(f"{here.__qualname__}.{name}={value!r}")
    digest = hashlib.sha256()
    for text in sorted(_text_of(file) for file in files):
        digest.update(text)
    digest.update(repr(sorted(numbers)).encode())
    return digest.hexdigest()


def _globals_of(function: Any) -> Iterator[tuple[str, Any]]:
    for name in function.__code__.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]


@cache
def _text_of(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError:  # in a zip file
        return file.encode()


# Threads.


def thread_count(work: float, grain: float) -> int:
    """Return how many threads are worth it, if each should have `grain` operations or more."""
    most = 1 if getattr(_THREAD, "alone", False) else torch.get_num_threads()
    return int(max(1, min(most, work // grain)))


def shares(total: int, parts: int) -> list[tuple[int, int]]:
    """Cut ``range(total)`` into ranges of nearly equal length.

    Examples
    --------
    >>> shares(7, 3)
    [(0, 2), (2, 4), (4, 7)]
    """
    return [(total * k // parts, total * (k + 1) // parts) for k in range(parts)]


def run_parts(function: Callable[..., object], parts: Sequence[tuple[Any, ...]]) -> None:
    """Call `function` with each tuple of arguments, the first one in this thread."""
    waiting = [_pool(os.getpid()).submit(function, *part) for part in parts[1:]]
    function(*parts[0])
    for future in waiting:
        future.result()


#: Of a thread of :func:`side_by_side`: ``alone``, its loops have no further threads. As the number
#: of threads of torch it belongs to the thread and changes no result, so that it is no argument of
#: every field and sweep.
_THREAD = threading.local()

#: Calls a function with each of some tuples of arguments.
Run = Callable[[Callable[..., object], Sequence[tuple[Any, ...]]], None]


@contextmanager
def side_by_side(tasks: int, threads: int | None = None) -> Iterator[Run]:
    """Give a function that calls another with each of `tasks` tuples of arguments, in threads.

    Compiled loops that are called there use one thread each. One task is done in this thread, and
    its loops may use all. The first failure is raised after all tasks have ended.

    Parameters
    ----------
    tasks : int
        Tuples of arguments.
    threads : int, optional
        Tasks at a time; as many as torch has threads by default.

    Examples
    --------
    >>> with side_by_side(3) as run:
    ...     numbers = []
    ...     run(lambda x: numbers.append(x * x), [(1,), (2,), (3,)])
    >>> sorted(numbers)
    [1, 4, 9]
    """
    count = min(tasks, torch.get_num_threads() if threads is None else threads)
    if count < 2:
        yield _run_here
        return
    with ThreadPoolExecutor(count, "rmsim-networks", initializer=_set_alone) as pool:

        def run(function: Callable[..., object], parts: Sequence[tuple[Any, ...]]) -> None:
            waiting = [pool.submit(function, *part) for part in parts]
            problems = [future.exception() for future in waiting]
            for problem in problems:
                if problem is not None:
                    raise problem

        yield run


def _run_here(function: Callable[..., object], parts: Sequence[tuple[Any, ...]]) -> None:
    for part in parts:
        function(*part)


def _set_alone() -> None:
    _THREAD.alone = True


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Return the threads of this process; a forked child must not wait for its parent's."""
    return ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="rmsim")
