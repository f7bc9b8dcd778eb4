"""How runs are kept and ended: files, data, provenance, stores, processes, signals, progress."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmtheory.runtime.files import replacing, write_bytes, write_text
    from rmtheory.runtime.processes import (
        ProcessDiedError,
        RemoteError,
        as_finished,
        available_cores,
        in_order,
    )
    from rmtheory.runtime.progress import counting
    from rmtheory.runtime.provenance import (
        canonical_json,
        git_state,
        package_versions,
        parameters_hash,
    )
    from rmtheory.runtime.run_store import Lock, RunStore
    from rmtheory.runtime.untrusted import read_bytes, read_json, read_npy, read_npz, read_text
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".files": ["replacing", "write_bytes", "write_text"],
            ".processes": [
                "ProcessDiedError",
                "RemoteError",
                "as_finished",
                "available_cores",
                "in_order",
            ],
            ".progress": ["counting"],
            ".provenance": ["canonical_json", "git_state", "package_versions", "parameters_hash"],
            ".run_store": ["Lock", "RunStore"],
            ".untrusted": ["read_bytes", "read_json", "read_npy", "read_npz", "read_text"],
        },
    )

__all__ = [
    "Lock",
    "ProcessDiedError",
    "RemoteError",
    "RunStore",
    "as_finished",
    "available_cores",
    "canonical_json",
    "counting",
    "git_state",
    "in_order",
    "package_versions",
    "parameters_hash",
    "read_bytes",
    "read_json",
    "read_npy",
    "read_npz",
    "read_text",
    "replacing",
    "write_bytes",
    "write_text",
]
