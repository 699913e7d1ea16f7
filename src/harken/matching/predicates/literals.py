"""What a text must contain to be like a pattern: the pieces that can be told without doubt.

Of thousands of patterns few are then to be asked, those whose pieces a text has.
"""

from __future__ import annotations

import re

from harken.model.text import like_tokens

_TOKEN = re.compile(
    r"""
      (?P<literal> [^\\.+*?()|\[\]{}^$] | \\ [^A-Za-z0-9] )
    | (?P<nothing> \. | \^ | \$ | \\ [dDwWsSbBAz] | \[ \^?+ [^]\[\\] [^]\[\\]* \] )
    | (?P<open> \( (?: \?: | \?P?<\w+> | (?!\?) ) )
    | (?P<close> \) )
    | (?P<either> \| )
    | (?P<repeat> (?: [*+?] | \{ \d+ (?: , \d* )? \} ) \?? )
    """,
    re.VERBOSE,
)
"""What is understood of regular expressions. Those with flags, odd classes or numbered characters are not."""


def pieces_of_like(pattern: str, escape: str | None) -> tuple[str, ...]:
    """Texts that whatever is like a pattern contains."""
    return tuple(token for token in like_tokens(pattern, escape) if isinstance(token, str))


def pieces_of_regex(pattern: str) -> tuple[str, ...]:
    """Texts that whatever matches a regular expression contains; none if it is not understood."""
    runs, depth, at = [""], 0, 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None or (token.lastgroup == "either" and depth == 0):
            return ()
        at = token.end()
        if token.lastgroup == "literal" and depth == 0:
            runs[-1] += token.group()[-1]
            continue
        if token.lastgroup == "repeat":
            runs[-1] = runs[-1][:-1]  # what is repeated may be there no times
        runs.append("")
        depth += (token.lastgroup == "open") - (token.lastgroup == "close")
    return tuple(run for run in runs if run)
