"""Schema files: a JSON object of attribute names and type names."""

from __future__ import annotations

from harken.errors import InputFileError, SchemaError
from harken.files.blocks import read_all
from harken.files.formats import shown
from harken.files.json_text import parse_object
from harken.model.schema import Schema


def read_schema(path: str) -> Schema:
    """The schema that a file like `{"price": "float", "listed": "date"}` declares."""
    text = read_all(path)
    if not text.strip():
        raise InputFileError(shown(path), 'the file is empty; a schema looks like {"price": "float"}')
    try:
        return Schema(parse_object(text))  # type: ignore[arg-type]  # Schema says what is wrong with a value
    except (SchemaError, ValueError) as error:
        raise InputFileError(shown(path), str(error)) from error
