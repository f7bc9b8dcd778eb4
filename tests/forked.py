"""A child process of the tests that has everything imported: torch alone takes seconds."""

import multiprocessing
import traceback
from collections.abc import Callable
from typing import Any

import pytest

#: Children with the modules of their parent, and every function that a test has replaced.
FORK = multiprocessing.get_context("fork")


def in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `function` returns in a forked process: its limits and settings end with it."""
    here, there = FORK.Pipe(duplex=False)
    child = FORK.Process(target=_answer, args=(there, function, arguments))
    child.start()
    there.close()
    try:
        failed, answer = here.recv()
    except EOFError:
        child.join()
        pytest.fail(f"the child ended with code {child.exitcode}")
    child.join()
    if failed:
        pytest.fail(answer)
    return answer


def _answer(there: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    import torch

    torch.set_num_threads(1)  # the other threads of the parent are not here
    try:
        there.send((False, function(*arguments)))
    except BaseException:
        there.send((True, traceback.format_exc()))
