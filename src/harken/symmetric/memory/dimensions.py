"""The dimensions of what one side holds: attributes together with the forms of the sets on them."""

from __future__ import annotations

from harken.symmetric.memory.forms import Form, axes_of


class Dimensions:
    """Numbers the axes of all dimensions seen so far. New ones may not come while others look."""

    def __init__(self) -> None:
        self.of_attribute: dict[str, dict[Form, int]] = {}
        """For each attribute the forms that are held, and the first axis of each."""
        self._forms: list[Form] = []
        self._leads: list[bool] = []

    def axis(self, attribute: str, form: Form) -> int:
        """The first axis of a dimension, which is made if it is new; that of y comes after that of x."""
        forms = self.of_attribute.setdefault(attribute, {})
        axis = forms.get(form)
        if axis is None:
            axis = forms[form] = len(self._forms)
            self._forms += [form] * axes_of(form)
            self._leads += [True, False][: axes_of(form)]
        return axis

    def is_text(self, axis: int) -> bool:
        """Whether the constants of an axis are texts."""
        return self._forms[axis] is Form.STRING

    def leads(self, axis: int) -> bool:
        """Whether it is the first or only axis of its dimension."""
        return self._leads[axis]
