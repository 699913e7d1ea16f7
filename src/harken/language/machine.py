"""Running the tables that lark makes of the grammar, without the ceremony.

Lark builds the LALR tables; for texts that are right, and most are, this loop takes half the time that lark takes.
A text that it refuses is read again, more slowly, to say where and what could have stood there.
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


class Refusal(NamedTuple):
    """The first token that cannot stand where it does; without text at the end."""

    start: int
    found: str
    kind: str
    accepts: frozenset[str]
    """All terminals that could stand there."""


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
        self._rules = {each.name for each in reductions.values()}
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

    def refusal(self, text: str, earlier: int | None = None) -> Refusal:
        """Why a text is refused that `run` refuses; or what could stand `earlier` than what it stumbled over."""
        states, at, end = [self._start], 0, len(text)
        while True:
            start, found, kind = end, "", _END
            if at < end:
                token = TOKEN.match(text, at)
                kind = token.lastgroup  # type: ignore[union-attr,assignment]  # something always matches
                start, at = token.span(kind)  # type: ignore[union-attr]
                found = text[start:at]
                if kind == "word":
                    kind = word_type(found, text, at, self._steps[states[-1]])
            if kind == "skip":
                continue
            after = self._after(states, kind)
            if after is None or start == earlier:
                accepts = [name for name in self._steps[states[-1]] if self._after(states, name) is not None]
                return Refusal(start, found, kind, frozenset(accepts))
            assert found, "what is refused never reaches the end"
            states = after

    def _after(self, states: list[int], kind: str) -> list[int] | None:
        """The states after one more token; None if it is refused, as LALR finds out only after some reductions."""
        states = states.copy()
        while True:
            step = self._steps[states[-1]].get(kind)
            if step is None or kind in self._rules:
                return None
            if step.__class__ is int:
                return [*states, step]
            del states[-step.size :]
            states.append(self._steps[states[-1]][step.name])
            if states[-1] == self._end:
                return states if kind == _END else None
