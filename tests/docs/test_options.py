"""docs/choosing.md names the options that algorithms have, with what they are unless said."""

from __future__ import annotations

import re
from importlib import import_module
from inspect import signature
from pathlib import Path

from harken.matching import registry

_ROW = re.compile(
    r"^\| (?P<algorithms>(?:`[\w-]+`(?:, )?)*) ?\| `(?P<option>\w+)` \| .*(?P<default>[^ ]+) \|$", re.MULTILINE
)


def told() -> dict[tuple[str, str], str]:
    """By algorithm and option, the last word of what the page says."""
    page = (Path(__file__).parents[2] / "docs" / "choosing.md").read_text(encoding="utf-8")
    found, algorithms = {}, list[str]()
    for row in _ROW.finditer(page):
        algorithms = re.findall(r"`([\w-]+)`", row["algorithms"]) or algorithms
        said = row[0].removesuffix(" |").rpartition(" ")[2].strip("`").replace(",", "")
        found |= {(algorithm, row["option"]): said for algorithm in algorithms}
    return found


def test_the_page_has_every_option_and_its_default() -> None:
    expected = {}
    for name, each in registry._ALGORITHMS.items():
        module, _, kind = each.target.partition(":")
        for option, known in signature(getattr(import_module(module), kind)).parameters.items():
            default = "said" if known.default is None else str(known.default)
            expected[name, option] = default
    assert told() == expected
