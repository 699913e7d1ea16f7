"""Running the tables that lark makes of the grammar, without the ceremony.

Lark builds the LALR tables and explains errors; for texts that are right, and most are, this loop does the same
in half the time. What it refuses is parsed again by lark, which says why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from lark import Lark
from lark.parsers.lalr_analysis import Shift

from harken.language.lexer import TOKEN, Lexeme, word_type

Built = TypeVar("Built")

_END = "$END"


class RefusedError(Exception):
    """The text is not of the language."""


class _Reduction(NamedTuple):
    """Replace the last `size` values by what `build` makes of them, a part called `name`."""

    size: int
    build: Callable[[list[Any]], Any]
    name: str


class Machine(Generic[Built]):
    """A parser for texts that are right. Any number of threads may use one."""

    def __init__(self, lark: Lark) -> None:
        front = lark.parser.parser
        table, callbacks = front.parser.parse_table, front.parser.callbacks
        self._start: int = table.start_states["start"]
        self._end: int = table.end_states["start"]
        # A step is a state to go to, or a reduction; which of the two is told apart by its class alone.
        self._steps: dict[int, dict[str, Any]] = {}
        reductions = {
            rule: _Reduction(len(rule.expansion), build, str(rule.origin.name))
            for rule, build in callbacks.items()
        }
        assert all(each.size for each in reductions.values()), "no rule of the grammar is empty"
        for state, actions in table.states.items():
            self._steps[state] = {
                str(name): to if action is Shift else reductions[to] for name, (action, to) in actions.items()
            }

    def run(self, text: str) -> Built:
        """What the text builds; RefusedError if it is not of the language."""
        steps, match, at, end = self._steps, TOKEN.match, 0, len(text)
        states: list[int] = [self._start]
        values: list[Any] = []
        accepted = steps[self._start]
        while True:
            lexeme: Lexeme | None = None
            kind = _END
            if at < end:
                found = match(text, at)
                kind = found.lastgroup  # type: ignore[union-attr,assignment]  # something always matches
                start, at = found.span(kind)  # type: ignore[union-attr]
                if kind == "skip":
                    continue
                lexeme = Lexeme(text[start:at])
                lexeme.start_pos = start
                if kind == "word":
                    kind = word_type(lexeme, text, at, accepted)
                lexeme.type = kind
            while True:
                step = accepted.get(kind)
                if step.__class__ is int:
                    states.append(step)
                    values.append(lexeme)
                    accepted = steps[step]
                    break
                if step is None:
                    raise RefusedError
                size, build, name = step
                parts = values[-size:]
                del states[-size:], values[-size:]
                values.append(build(parts))
                state = steps[states[-1]][name]
                states.append(state)
                if state == self._end and lexeme is None:
                    built: Built = values[-1]
                    return built
                accepted = steps[state]
