"""A declared schema: which attributes there are, and of which type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime

from harken.errors import SchemaError, closest
from harken.model.foreign import FlatValue, Foreign
from harken.model.values import NUMERIC_TYPES, Type, Value, type_of


class Schema(Mapping[str, Type]):
    """Attribute names and their types; immutable.

    >>> schema = Schema({"price": "float", "maker": "string"})
    >>> schema["price"]
    <Type.FLOAT: 'float'>
    """

    def __init__(self, attributes: Mapping[str, Type | str]) -> None:
        if not isinstance(attributes, Mapping):
            raise SchemaError(
                f"a schema maps attributes to types, found {type(attributes).__name__}",
                attribute="",
                suggestion='write it like {"price": "float"}',
            )
        self._types = {_named(name): _type_named(name, declared) for name, declared in attributes.items()}

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
        self.check_type(attribute, type_of(value))

    def check_type(self, attribute: str, found: Type) -> None:
        """Refuse constants of a type that an attribute of the declared type can never equal."""
        self._check(attribute, self.declared(attribute), found)

    def check_value(self, attribute: str, value: FlatValue) -> None:
        """Refuse an event's value of another type; attributes the schema has not are left alone."""
        declared = self._types.get(attribute)
        if declared is None:
            return
        if isinstance(value, Foreign):
            raise SchemaError.wrong_type(attribute, declared.value, value.what)
        self._check(attribute, declared, type_of(value))

    def below(self, name: str) -> list[str]:
        """The declared attributes below a name. Linear in the schema."""
        return [attribute for attribute in self._types if attribute.startswith(f"{name}.")]

    @staticmethod
    def _check(attribute: str, declared: Type, found: Type) -> None:
        if found is declared or (declared is Type.FLOAT and found in NUMERIC_TYPES):
            return
        raise SchemaError.wrong_type(attribute, declared.value, found.value)


def _named(attribute: object) -> str:
    if not isinstance(attribute, str) or not attribute:
        said = f"an attribute name is a non-empty string, found {attribute!r}"
        raise SchemaError(said, attribute=str(attribute))
    return attribute


_PYTHON = {int: "int", float: "float", str: "string", bool: "bool", date: "date", datetime: "timestamp"}


def _type_named(attribute: str, declared: Type | str) -> Type:
    names = [each.value for each in Type if each is not Type.DECIMAL]
    name = declared.value if isinstance(declared, Type) else declared
    if isinstance(name, str) and name.lower() in names:
        return Type(name.lower())
    raise SchemaError(
        f"attribute {attribute!r} is declared {name!r}; the types are {', '.join(names)}",
        attribute=str(attribute),
        found=str(name),
        suggestion=_type_meant(name, names),
    )


def _type_meant(name: object, names: list[str]) -> str | None:
    if not isinstance(name, str):
        return f"did you mean {_PYTHON[name]!r}?" if isinstance(name, type) and name in _PYTHON else None
    if name.lower() == "number":
        return "did you mean 'float'? It takes ints too"
    if name.lower() == Type.DECIMAL.value:
        return "write float: it takes decimals, and compares them exactly"
    near = closest(name, names)
    return f"did you mean {near!r}?" if near else None
