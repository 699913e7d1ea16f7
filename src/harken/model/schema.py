"""A declared schema: which attributes there are, and of which type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harken.errors import SchemaError, closest
from harken.model.foreign import FlatValue, Foreign
from harken.model.values import NUMERIC_TYPES, EventValue, Type, Value, type_of


class Schema(Mapping[str, Type]):
    """Attribute names and their types; immutable.

    >>> schema = Schema({"price": "float", "maker": "string"})
    >>> schema["price"]
    <Type.FLOAT: 'float'>
    """

    def __init__(self, attributes: Mapping[str, Type | str]) -> None:
        self._types = {str(name): _type_named(name, declared) for name, declared in attributes.items()}

    def __getitem__(self, attribute: str) -> Type:
        return self._types[attribute]

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def __repr__(self) -> str:
        return f"Schema({ {name: declared.value for name, declared in self._types.items()} })"

    def declared(self, attribute: str) -> Type:
        """The declared type, or an error that names the nearest attribute there is."""
        if attribute not in self._types:
            raise SchemaError.unknown_attribute(attribute, self._types)
        return self._types[attribute]

    def check_constant(self, attribute: str, value: Value) -> None:
        """Refuse a constant that an attribute of the declared type can never equal."""
        self._check(attribute, self.declared(attribute), value)

    def check_value(self, attribute: str, value: FlatValue) -> None:
        """Refuse an event's value of another type; attributes the schema has not are left alone."""
        declared = self._types.get(attribute)
        if declared is None:
            return
        if isinstance(value, Foreign):
            raise SchemaError.wrong_type(attribute, declared.value, value.what)
        self._check(attribute, declared, value)

    def below(self, name: str) -> list[str]:
        """The declared attributes below a name. Linear in the schema."""
        return [attribute for attribute in self._types if attribute.startswith(f"{name}.")]

    @staticmethod
    def _check(attribute: str, declared: Type, value: EventValue) -> None:
        found = type_of(value)
        if found is declared or (declared is Type.FLOAT and found in NUMERIC_TYPES):
            return
        raise SchemaError.wrong_type(attribute, declared.value, found.value)


def _type_named(attribute: str, declared: Type | str) -> Type:
    if isinstance(declared, Type) and declared is not Type.DECIMAL:
        return declared
    names = [each.value for each in Type if each is not Type.DECIMAL]
    if declared in (Type.DECIMAL, Type.DECIMAL.value):
        raise SchemaError(
            f"attribute {attribute!r} is declared decimal, which is none of {', '.join(names)}",
            attribute=str(attribute),
            found=Type.DECIMAL.value,
            suggestion="write float: it takes decimals and compares them exactly",
        )
    if not isinstance(declared, str) or declared.lower() not in names:
        near = closest(declared, names) if isinstance(declared, str) else None
        raise SchemaError(
            f"attribute {attribute!r} is declared {declared!r}; the types are {', '.join(names)}",
            attribute=str(attribute),
            found=str(declared),
            suggestion=f"did you mean {near!r}?" if near else None,
        )
    return Type(declared.lower())
