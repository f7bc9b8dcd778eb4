"""The explorer: one page with sliders for J_D, lambda and depth, and the grids behind it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmtheory.explorer.grids import at_point, load_grids, page_text, write_page
else:
    from rmtheory.base.lazy import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {".grids": ["at_point", "load_grids", "page_text", "write_page"]},
    )

__all__ = ["at_point", "load_grids", "page_text", "write_page"]
