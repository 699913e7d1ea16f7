"""Why an event does or does not satisfy a subscription: each part's truth, and the value it saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from harken.language import to_text
from harken.language.printer import name_text, value_text
from harken.matching.contract import AccessPath
from harken.model.evaluation import Truth, truth
from harken.model.events import FlatEvent
from harken.model.expressions import And, Constant, Expression, Not, Or, children
from harken.model.foreign import Foreign, foreign_above
from harken.model.limits import Limits
from harken.model.subscriptions import Subscription, SubscriptionId
from harken.normal.form import normalise

_WORDS = {True: "true", False: "false", None: "unknown"}
_SIGNS = {True: "✓", False: "✗", None: "?"}


@dataclass(frozen=True, slots=True)
class Part:
    """One node of an explained expression."""

    text: str
    truth: Truth
    seen: str | None
    parts: tuple[Part, ...] = ()

    def lines(self, indent: str = "") -> list[str]:
        """The part and what is below it, one line each."""
        saw = f"   [{self.seen}]" if self.seen is not None else ""
        own = f"{indent}{_SIGNS[self.truth]} {_WORDS[self.truth]:<7}  {self.text}{saw}"
        return [own, *(line for part in self.parts for line in part.lines(indent + "  "))]

    def to_dict(self) -> dict[str, object]:
        """The part as plain data, for JSON."""
        said: dict[str, object] = {"text": self.text, "truth": _WORDS[self.truth]}
        if self.seen is not None:
            said["seen"] = self.seen
        if self.parts:
            said["parts"] = [part.to_dict() for part in self.parts]
        return said


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether and why a subscription matches an event; print it."""

    subscription: SubscriptionId
    matches: bool
    root: Part
    notes: tuple[str, ...] = ()
    access: tuple[str, ...] = ()
    """How an event finds the subscription, clause by clause, where an index is used."""

    def __str__(self) -> str:
        verdict = "matches" if self.matches else "does not match"
        head = f"{self.subscription!r} {verdict}"
        notes = [f"  note: {note}" for note in self.notes]
        paths = [f"  found through: {path}" for path in self.access]
        return "\n".join([head, *self.root.lines("  "), *notes, *paths])

    def to_dict(self) -> dict[str, object]:
        """The explanation as plain data, for JSON."""
        return {
            "subscription": self.subscription,
            "matches": self.matches,
            "expression": self.root.to_dict(),
            "notes": list(self.notes),
            "access": list(self.access),
        }


def explain(
    subscription: Subscription,
    event: FlatEvent,
    moment: datetime,
    limits: Limits,
    paths: Sequence[AccessPath] = (),
) -> Explanation:
    """The explanation of one subscription, which is found by these paths, for one flat event at one moment."""
    root = _part(subscription.expression, event)
    validity = subscription.validity
    valid_now = validity.holds_at(moment)
    notes = []
    form = normalise(subscription.expression, limits)
    if form.never_matches:
        notes.append("this expression contradicts itself and never matches any event")
    if form.always_matches:
        notes.append("this expression is true for every event")
    if not valid_now:
        notes.append(f"not valid at this time: valid from {validity.valid_from} until {validity.valid_until}")
    matches = root.truth is True and valid_now
    return Explanation(subscription.id, matches, root, tuple(notes), tuple(map(_path_text, paths)))


def _path_text(path: AccessPath) -> str:
    others = "alone" if not path.neighbours else f"with {path.neighbours:,} other clauses"
    if path.neighbours == 1:
        others = "with one other clause"
    every = isinstance(path.condition, Constant)
    return f"{'every event' if every else to_text(path.condition)}, {others}"


def _part(node: Expression, event: FlatEvent) -> Part:
    verdict = truth(node, event)
    if isinstance(node, And | Or):
        word = "all of" if isinstance(node, And) else "one of"
        return Part(word, verdict, None, tuple(_part(child, event) for child in children(node)))
    if isinstance(node, Not) and isinstance(node.term, And | Or | Not):
        return Part("not", verdict, None, (_part(node.term, event),))
    leaf = node.term if isinstance(node, Not) else node
    if isinstance(leaf, Constant):
        return Part(to_text(node), verdict, None)
    return Part(to_text(node), verdict, _seen(leaf.attribute, event))  # type: ignore[union-attr]  # a predicate


def _seen(attribute: str, event: FlatEvent) -> str:
    name = name_text(attribute)
    if attribute in event:
        value = event[attribute]
        return (
            f"{name} is foreign: {value.what}" if isinstance(value, Foreign) else f"{name} is {value_text(value)}"
        )
    if above := foreign_above(attribute, event):
        return f"{name} is foreign: {name_text(above[0])} is {above[1].what}"
    return f"{name} is missing"
