"""`harken demo`: see Harken at work."""

from __future__ import annotations

from harken.cli.terminal import screen


def demo() -> None:
    """Show Harken at work on a small marketplace, in a few seconds.

    Example: harken demo
    """
    from harken.demo import show

    show(screen())
