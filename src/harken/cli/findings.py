"""What is wrong with single subscriptions, as one line each or as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harken.compiler import Reject
    from harken.errors import HarkenError, InputFileError
    from harken.files import SubscriptionFile


@dataclass(frozen=True, slots=True)
class Finding:
    """A bad (`error`) or doubtful (`warning`) subscription: where it stands, and where in its expression."""

    severity: str
    where: str
    row: int | None
    line: int | None
    id: str | int | None
    message: str
    expression_line: int | None = None
    expression_column: int | None = None

    @classmethod
    def of_reject(cls, file: SubscriptionFile, reject: Reject) -> Finding:
        """A subscription that an engine would not take."""
        at = reject.position
        return cls(
            "error",
            file.where(reject.row),
            reject.row,
            file.line(reject.row),
            reject.id,
            _one_line(reject.error),
            at.line if at else None,
            at.column if at else None,
        )

    @classmethod
    def of_warning(cls, file: SubscriptionFile, row: int, message: str) -> Finding:
        """A subscription that is taken, but can hardly be meant as it is written."""
        id = file.ids[row]
        known = id if isinstance(id, str | int) else None
        return cls("warning", file.where(row), row, file.line(row), known, message)

    @classmethod
    def of_line(cls, error: InputFileError) -> Finding:
        """A line of a file that is no subscription at all."""
        said = error.message.partition(f"line {error.line}: ")[2] or error.message
        return cls("error", f"{error.path}:{error.line}", None, error.line, None, said)

    def __str__(self) -> str:
        place = "-" if self.expression_line is None else f"{self.expression_line}:{self.expression_column}"
        said = f"warning: {self.message}" if self.severity == "warning" else self.message
        return f"{self.where} {_shown(self.id)} {place} {said}"

    def to_dict(self) -> dict[str, object]:
        """The finding as plain data, for JSON."""
        return asdict(self)


def _one_line(error: HarkenError) -> str:
    """The error without its position and its picture."""
    said = f"{error.message}; {error.suggestion}" if error.suggestion else error.message
    return " ".join(said.split())


def _shown(id: str | int | None) -> str:
    """An id as one word, so that the line can be cut at spaces."""
    if id is None:
        return "-"
    return str(id) if isinstance(id, int) or (id.isprintable() and " " not in id) else repr(id)
