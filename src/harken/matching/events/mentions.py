"""The attributes that subscriptions mention: what of an event has to be looked at."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from harken.model.foreign import parents


class Mentions(Collection[str]):
    """Attributes with how often each is mentioned, and for the names above them, those below."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """How often each attribute is mentioned."""
        self.above: dict[str, dict[str, None]] = {}
        """By name, the attributes below it."""

    def __contains__(self, attribute: object) -> bool:
        return attribute in self.counts

    def __iter__(self) -> Iterator[str]:
        return iter(self.counts)

    def __len__(self) -> int:
        return len(self.counts)

    def add(self, attribute: str) -> None:
        """One more mention."""
        if attribute not in self.counts:
            for parent in parents(attribute):
                self.above.setdefault(parent, {})[attribute] = None
        self.counts[attribute] = self.counts.get(attribute, 0) + 1

    def drop(self, attribute: str) -> None:
        """One mention less."""
        self.counts[attribute] -= 1
        if self.counts[attribute]:
            return
        del self.counts[attribute]
        for parent in parents(attribute):
            del self.above[parent][attribute]
            if not self.above[parent]:
                del self.above[parent]

    def below(self, name: str) -> Collection[str]:
        """The attributes below a name: `a.b.c` for `a.b` and for `a`."""
        return self.above.get(name, ())

    def concern(self, name: str) -> bool:
        """Whether a value of this name can matter: it is mentioned, or something below it is."""
        return name in self.counts or name in self.above
