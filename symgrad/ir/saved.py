"""Where pickles of earlier versions look for graphs: each is refused, with what to do instead.

The name stays for them, and only for them: graphs are saved by `formats/saved.py`.
"""

from typing import NoReturn

from symgrad.ir.errors import GraphError


def __getattr__(name: str) -> NoReturn:
    raise GraphError(
        "this is a pickle of an earlier version of symgrad; build the graph again, or compile the "
        "program again, and pickle that. To keep a graph from version to version, write it with "
        "Graph.save"
    )
