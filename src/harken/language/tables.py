"""The LALR tables of the grammar as flat arrays, for kernels that run them over many texts at once.

What `machine.py` does with one text and Python objects, a kernel does with these. It knows nothing of the grammar:
which step comes next, and which rule has been read, is all in here.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from lark import Lark
from lark.grammar import Rule
from lark.parsers.lalr_analysis import Shift

from harken.language.parser import grammar

LIST_BEGINS, LIST_GOES_ON, PASSED_ON = "list begins", "list goes on", "passed on"
"""What rules are called that have no name in the grammar: two for what is repeated, one for what is wrapped."""


class Tables(NamedTuple):
    """Steps by state and symbol, and the rules. Symbols, terminals among them, are numbered from 1."""

    step: npt.NDArray[np.int16]
    """The state to go to, counted from 1; the rule to reduce by, counted from -1 down; 0 if it is refused."""
    size: npt.NDArray[np.int64]
    """By rule, how many values it replaces."""
    made: npt.NDArray[np.int64]
    """By rule, the symbol that it makes."""
    rules: tuple[str, ...]
    """By rule, its name."""
    symbols: dict[str, int]
    start: int
    end: int


@cache
def tables() -> Tables:
    """The tables of the WHERE language."""
    return _flat(grammar())


def _flat(lark: Lark) -> Tables:
    front = lark.parser.parser.parser
    states, rules = front.parse_table.states, list(front.callbacks)
    names = sorted({str(name) for actions in states.values() for name in actions})
    symbols = {name: at for at, name in enumerate(names, 1)}
    number_of = {rule: at for at, rule in enumerate(rules)}
    place_of = {state: at for at, state in enumerate(states)}
    step = np.zeros((len(states), len(symbols) + 1), np.int16)
    for state, actions in states.items():
        for name, (action, to) in actions.items():
            step[place_of[state], symbols[str(name)]] = place_of[to] + 1 if action is Shift else -1 - number_of[to]
    return Tables(
        step,
        np.array([len(rule.expansion) for rule in rules], np.int64),
        np.array([symbols.get(str(rule.origin.name), 0) for rule in rules], np.int64),
        tuple(map(_name, rules)),
        symbols,
        place_of[front.parse_table.start_states["start"]],
        place_of[front.parse_table.end_states["start"]],
    )


def _name(rule: Rule) -> str:
    origin = str(rule.origin.name)
    if origin.startswith("__"):  # lark's own, for what the grammar repeats
        return LIST_GOES_ON if str(rule.expansion[0].name) == origin else LIST_BEGINS
    if rule.alias is not None:
        return str(rule.alias)
    return PASSED_ON if rule.options.expand1 else origin
