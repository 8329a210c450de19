"""The engine's modules as one classic script, for pages that are opened from a file.

A page from a file may import no module. So the modules are put one after the other, each after
those that it imports, into one function; it returns what they export. That asks two things of the
modules, which are refused otherwise: an import or export is a line or a declaration of its own
(`import {a, b} from "./x.js"`, `export function f`), and no two modules give one name to two things
at their top level.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from pathlib import Path

from adjoint_lib.core.equivalent_net import EquivalentNet
from adjoint_lib.errors import InputError
from adjoint_lib.explorer.export import packed

ENGINE = Path(__file__).parent / "engine"

IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.-]+)";\n', re.M)
EXPORT = re.compile(r"^export ((?:async )?(?:function\*? |class |const |let ))(?P<name>\w+)", re.M)
TOP_LEVEL = re.compile(r"^(?:async )?(?:function\*? |class |const |let )(\w+)", re.M)


def engine() -> str:
    """The whole engine: a script that defines `adjoint_engine` and calls it, as `adjoint`."""
    return bundled(sorted(ENGINE.glob("*.js")), "adjoint_engine") + (
        "const adjoint = adjoint_engine();\n"
    )


def base64_of(net: EquivalentNet, dtype: str | None = None) -> str:
    """The exported network as base64 text, which a script can hold as a string."""
    return base64.b64encode(packed(net, dtype)).decode()


def bundled(modules: Iterable[Path], name: str) -> str:
    """The modules as one function of this name, which returns an object of all their exports.

    A module that another one imports is in the same folder, and among the modules.
    """
    sources = {path.name: path.read_text("utf-8") for path in modules}
    parts, exports, owners = [], [], dict[str, str]()
    for module in _in_order(sources):
        source = sources[module]
        exports += [found["name"] for found in EXPORT.finditer(source)]
        source = EXPORT.sub(r"\1\2", IMPORT.sub("", source))
        if left := re.search(r"^(?:import|export)\b.*", source, re.M):
            raise InputError(
                f"{module}: expected imports by name and exported declarations, found {left[0]!r}."
            )
        for found in TOP_LEVEL.finditer(source):
            if owners.setdefault(found[1], module) != module:
                raise InputError(
                    f"{module}: {found[1]!r} is a name in {owners[found[1]]} too. Rename one."
                )
        parts.append(f"// ---- {module}\n{source}")
    parts.append(f"return {{ {', '.join(exports)} }};\n")
    return f'function {name}() {{\n"use strict";\n{"".join(parts)}}}\n'


def _in_order(sources: dict[str, str]) -> list[str]:
    """The modules' names, each after those that it imports."""
    order: list[str] = []

    def visit(module: str, path: tuple[str, ...]) -> None:
        if module in path:
            raise InputError(f"modules import each other in a circle: {' -> '.join(path)}.")
        if module not in sources:
            raise InputError(f"{path[-1]}: imports {module!r}, which is not among the modules.")
        if module not in order:
            for imported in IMPORT.findall(sources[module]):
                visit(imported, (*path, module))
            order.append(module)

    for module in sources:
        visit(module, ())
    return order
