"""What a text must contain to be like a pattern: the longest piece that can be told without doubt.

Of thousands of patterns few are then to be asked, those whose piece a text has.
"""

from __future__ import annotations

import re

from harken.model.text import like_tokens

_TOKEN = re.compile(
    r"""
      (?P<literal> [^\\.+*?()|\[\]{}^$] | \\ [^A-Za-z0-9] )
    | (?P<nothing> \. | \^ | \$ | \\ [dDwWsSbBAz] | \[ \^? [^]\[\\] [^]\[\\]* \] )
    | (?P<open> \( (?: \?: | \?P?<\w+> | (?!\?) ) )
    | (?P<close> \) )
    | (?P<either> \| )
    | (?P<repeat> (?: [*+?] | \{ \d+ (?: , \d* )? \} ) \?? )
    """,
    re.VERBOSE,
)
"""What is understood of regular expressions. Those with flags, odd classes or numbered characters are not."""


def piece_of_like(pattern: str, escape: str | None) -> str:
    """The longest text that whatever is like a pattern contains."""
    return max((token for token in like_tokens(pattern, escape) if isinstance(token, str)), key=len, default="")


def piece_of_regex(pattern: str) -> str:
    """A text that whatever matches a regular expression contains; empty if none is found."""
    runs, run, depth, at = list[str](), "", 0, 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None or (token.lastgroup == "either" and depth == 0):
            return ""
        at = token.end()
        if token.lastgroup == "literal" and depth == 0:
            run += token.group()[-1]
            continue
        if token.lastgroup == "repeat":
            run = run[:-1]  # what is repeated may be there no times
        runs.append(run)
        run = ""
        depth += (token.lastgroup == "open") - (token.lastgroup == "close")
    return max([*runs, run], key=len)
