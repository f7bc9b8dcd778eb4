"""A CUDA device on a machine without one, for tests of what a GPU would refuse or wait for.

Tensors on it hold their numbers on the CPU and say that they are on ``cuda:0``. As on a GPU

* an operation refuses tensors of two devices, unless one of them is a single number of the CPU;
* a generator of random numbers draws on its own device only;
* ``.numpy()`` is refused;
* the host waits for the device where it needs a number or a size from it (``item``, ``nonzero``, an
  index of booleans, ``equal``) and at every copy between the two. The waits are counted, with the
  line of the package that asked, and so are the operations that a GPU would have to launch.

Sums are taken in the order of the CPU, random numbers are those of the CPU: every result has to
equal that of the CPU, to the bit where the same operations are done.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    return_and_correct_aliasing,
)
from torch.utils._pytree import tree_leaves, tree_map

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)

_ROOT = f"{Path(__file__).resolve().parents[1]}/rmsim/"

_aten = torch.ops.aten

#: Operations whose answer, or its size, the host has to know.
_ANSWERS = {
    _aten._local_scalar_dense.default: "number",
    _aten.is_nonzero.default: "number",
    _aten.equal.default: "equal",
    _aten.nonzero.default: "nonzero",
    _aten.argwhere.default: "nonzero",
    _aten.masked_select.default: "masked_select",
    _aten.bincount.default: "bincount",
    _aten._unique2.default: "unique",
    _aten.unique_dim.default: "unique",
    _aten.unique_consecutive.default: "unique",
    _aten.repeat_interleave.Tensor: "repeat_interleave",
}

_INDEXING = {
    _aten.index.Tensor,
    _aten.index_put.default,
    _aten.index_put_.default,
    _aten._index_put_impl_.default,
    _aten._unsafe_index.Tensor,
}

#: Names of operations that only look at memory in another way: nothing is launched.
_VIEWS = (
    *("view", "slice", "aten.select.", "expand", "permute", "transpose", "squeeze", "alias"),
    *("split", "unbind", "diagonal.", "as_strided", "lift_fresh", "unfold", "movedim", "narrow"),
    *("detach", "::t", ".t.default", "reshape_alias", "sparse_csr_tensor_unsafe", "crow_indices"),
    *("sparse_compressed_tensor_unsafe", "col_indices", "values.default", "sym_", "prim.device"),
)


@dataclass
class Ledger:
    """What the host did to the device: waits and launches, by kind and line of the package."""

    waits: Counter[tuple[str, str]] = field(default_factory=Counter)
    launches: Counter[str] = field(default_factory=Counter)

    def wait(self, kind: str) -> None:
        """Note that the host waited."""
        self.waits[kind, _line()] += 1

    def launch(self, name: str) -> None:
        """Note an operation of the device."""
        self.launches[name] += 1

    def __str__(self) -> str:
        rows = [f"{count:5d} {kind} at {line}" for (kind, line), count in self.waits.most_common()]
        return "\n".join([f"{self.waits.total()} waits, {self.launches.total()} launches", *rows])


def _line() -> str:
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_ROOT):
            return f"{name[len(_ROOT) :]}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return "a test"


class DeviceTensor(torch.Tensor):
    """A tensor on the device; PyTorch's core takes it for ``meta``, since it has no CUDA."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> DeviceTensor:
        shape: dict[str, Any] = {}
        if held.layout == torch.strided:
            shape = {"strides": held.stride(), "storage_offset": held.storage_offset()}
        made = torch.Tensor._make_wrapper_subclass(
            cls, held.size(), dtype=held.dtype, device="meta", requires_grad=False, **shape
        )
        made.held = held
        return made  # type: ignore[no-any-return]

    device = property(lambda self: CUDA)  # type: ignore[assignment]
    is_cuda = property(lambda self: True)  # type: ignore[assignment]
    is_cpu = property(lambda self: False)  # type: ignore[assignment]
    is_meta = property(lambda self: False)  # type: ignore[assignment]
    nbytes = property(lambda self: self.held.nbytes)  # type: ignore[assignment]

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"on cuda:0: {self.held!r}"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError("a tensor of the pretend device outlived it")


class DeviceGenerator(torch.Generator):
    """A generator that remembers for which device it was made; its numbers are the CPU's."""

    place: torch.device

    def __new__(cls, device: torch.device | str = CPU) -> DeviceGenerator:
        made = super().__new__(cls, "cpu")
        made.place = CUDA if _is_cuda(device) else CPU
        return made

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """Where it draws."""
        return self.place


def _is_cuda(device: object) -> bool:
    return device is not None and torch.device(device).type in ("cuda", "meta")  # type: ignore[arg-type]


def _held(x: Any) -> Any:
    return x.held if isinstance(x, DeviceTensor) else x


def _lifted(x: Any) -> Any:
    return DeviceTensor(x) if type(x) is torch.Tensor else x


def fetched(x: Any) -> Any:
    """Return results with every tensor on the CPU, unseen by the ledger."""
    return tree_map(_held, x)


class _Operations(TorchDispatchMode):
    """Does every operation on the CPU, after what a GPU would have refused or waited for."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.ledger = ledger

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunctionSubclass():
            if func is _aten._to_copy.default:
                return self._to_copy(func, args, dict(kwargs))
            if func is _aten.copy_.default:
                return self._copy(func, args, kwargs)
            tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
            theirs = [x for x in tensors if isinstance(x, DeviceTensor)]
            if not theirs and not _is_cuda(kwargs.get("device")):
                return func(*args, **kwargs)
            ours = [x for x in tensors if not isinstance(x, DeviceTensor)]
            if func in _INDEXING:
                self._check_indices(args)
            elif theirs and any(x.dim() for x in ours):
                _refuse(f"the arguments of {func}")
            elif ours and args[0] is ours[0] and func._schema.is_mutable:
                _refuse(f"{func}, in place on the CPU")
            return self._compute(func, args, dict(kwargs), bool(theirs))

    def _compute(self, func: Any, args: Any, kwargs: dict[str, Any], theirs: bool) -> Any:
        name = str(func)
        if func in _ANSWERS and kwargs.get("output_size") is None:
            self.ledger.wait(_ANSWERS[func])
        elif not any(view in name for view in _VIEWS):
            self.ledger.launch(name)
        plain = {**kwargs, "device": CPU} if _is_cuda(kwargs.get("device")) else kwargs
        result = func(*tree_map(_held, args), **tree_map(_held, plain))
        if not isinstance(result, (torch.Tensor, list, tuple)):
            return result
        result = tree_map(_lifted, result)
        # An operation in place has to return the very tensor that it was given.
        return return_and_correct_aliasing(func, args, kwargs, result) if theirs else result

    def _to_copy(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        (source,) = args
        there = isinstance(source, DeviceTensor)
        target = kwargs.pop("device", None)
        goes = there if target is None else _is_cuda(target)
        if goes != there:
            self.ledger.wait("copy")
        elif goes:
            self.ledger.launch(str(func))
        made = func(_held(source), **kwargs)
        return DeviceTensor(made) if goes else made

    def _copy(self, func: Any, args: Any, kwargs: Any) -> Any:
        here, source = args[:2]
        if isinstance(here, DeviceTensor) != isinstance(source, DeviceTensor):
            if isinstance(source, DeviceTensor) or source.dim():
                self.ledger.wait("copy")
        elif isinstance(here, DeviceTensor):
            self.ledger.launch(str(func))
        func(_held(here), _held(source), *args[2:], **kwargs)
        return here

    def _check_indices(self, args: Any) -> None:
        target, indices = args[:2]
        there = isinstance(target, DeviceTensor)
        for index in indices:
            if not isinstance(index, torch.Tensor):
                continue
            if isinstance(index, DeviceTensor):
                if not there:
                    _refuse("an index and the tensor that it is for")
                if index.dtype in (torch.bool, torch.uint8):
                    self.ledger.wait("index of booleans")
            elif there:
                self.ledger.wait("index from the CPU")
        if len(args) > 2 and args[2].dim() and isinstance(args[2], DeviceTensor) != there:
            _refuse("an indexed tensor and its new values")


def _refuse(what: str) -> None:
    raise RuntimeError(f"expected all tensors on one device, found cuda:0 and cpu: {what}")


class _Calls(TorchFunctionMode):
    """Catches what never becomes an operation: ``device="cuda"``, ``to``, ``numpy``, lists."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.ledger = ledger

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        first = args[0] if args else None
        there = any(isinstance(x, DeviceTensor) for x in args)
        if func in (torch.Tensor.to, torch.Tensor.cpu, torch.Tensor.cuda):
            return self._to(func, first, args[1:], kwargs)
        if isinstance(first, DeviceTensor):
            if func is torch.Tensor.numpy:
                raise TypeError("can't convert cuda:0 device type tensor to numpy")
            if func is torch.Tensor.tolist:
                self.ledger.wait("copy")
                return first.held.tolist()
            if func is torch.Tensor.to_dense:
                self.ledger.launch("to_dense")
                return _on_cpu(lambda: DeviceTensor(first.held.to_dense()))
            if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
                args = (first, _as_tensors(args[1]), *args[2:])
        generator = kwargs.get("generator")
        if generator is not None:
            place = getattr(generator, "place", CPU)
            if place.type != (CUDA if there or _is_cuda(kwargs.get("device")) else CPU).type:
                raise RuntimeError(f"a generator of {place} cannot draw on another device")
        if _is_cuda(kwargs.get("device")):
            del kwargs["device"]
            if there:
                return func(*args, **kwargs)
            made = _on_cpu(lambda: func(*args, **kwargs))
            if func in (torch.tensor, torch.as_tensor, torch.asarray):
                self.ledger.wait("copy")
                # The memory of a GPU is never that of the host.
                made = _on_cpu(lambda: made.clone())
            else:
                self.ledger.launch(func.__name__)
            return tree_map(_lifted, made)
        return func(*args, **kwargs)

    def _to(self, func: Any, source: torch.Tensor, given: Any, kwargs: dict[str, Any]) -> Any:
        target = {torch.Tensor.cpu: CPU, torch.Tensor.cuda: CUDA}.get(func)
        target = kwargs.pop("device", target)
        rest = []
        for x in given:
            if isinstance(x, (torch.device, str)):
                target = torch.device(x)
            elif isinstance(x, torch.Tensor):
                target = x.device
                rest.append(x.dtype)
            else:
                rest.append(x)
        there = isinstance(source, DeviceTensor)
        goes = there if target is None else _is_cuda(target)
        if goes == there:
            return torch.Tensor.to(source, *rest, **kwargs) if rest or kwargs else source
        self.ledger.wait("copy")
        kwargs["copy"] = True
        dtype = [source.dtype] if not rest and "dtype" not in kwargs else rest
        made = _on_cpu(lambda: torch.Tensor.to(_held(source), *dtype, **kwargs))
        return DeviceTensor(made) if goes else made


def _as_tensors(index: Any) -> Any:
    """Return an index without lists, of which PyTorch's core would make tensors without data."""
    if isinstance(index, tuple):
        return tuple(map(_as_tensors, index))
    return torch.tensor(index) if isinstance(index, list) else index


def _on_cpu(work: Callable[[], Any]) -> Any:
    with _disable_current_modes():
        return work()


@contextmanager
def pretend_device(count: int = 1) -> Iterator[Ledger]:
    """Within it there are `count` CUDA devices, of which the first can be used."""
    ledger = Ledger()
    memory = SimpleNamespace(total_memory=40 * 2**30)
    with (
        mock.patch.object(torch, "Generator", DeviceGenerator),
        mock.patch.object(torch.cuda, "is_available", return_value=True),
        mock.patch.object(torch.cuda, "device_count", return_value=count),
        mock.patch.object(torch.cuda, "get_device_properties", return_value=memory),
        _Operations(ledger),
        _Calls(ledger),
    ):
        yield ledger
