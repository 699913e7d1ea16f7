"""Packages whose names are imported when they are first asked for: a process pays for what it uses.

Spark starts a process of Python for many small things, such as asking for the latest version of a folder.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec


def deferred(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """The `__getattr__` of a package that offers names of its modules; its other modules are found as ever."""
    homes = {name: module for module, offered in names.items() for name in offered}

    def found(name: str) -> object:
        module = f"{package}.{name}"
        if name in homes:
            value = getattr(import_module(f"{package}.{homes[name]}"), name)
        elif not name.startswith("_") and find_spec(module) is not None:
            value = import_module(module)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    return found
