"""The dimensions of what one side holds: attributes together with the forms of the sets on them."""

from __future__ import annotations

from harken.symmetric.memory.forms import Form, axes_of


class Dimensions:
    """Numbers the axes of all dimensions seen so far. New ones may not come while others look."""

    def __init__(self) -> None:
        self.of_attribute: dict[str, dict[Form, int]] = {}
        """For each attribute the forms that are held, and the first axis of each."""
        self._axes: list[tuple[Form, bool]] = []
        """Of each axis its form, and whether it is the first of its dimension."""

    def axis(self, attribute: str, form: Form) -> int:
        """The first axis of a dimension, which is made if it is new; that of y comes after that of x."""
        forms = self.of_attribute.get(attribute, {})
        axis = forms.get(form)
        if axis is None:
            axis = len(self._axes)
            # Whatever stops us in between leaves axes that nobody uses, which does no harm.
            self._axes += [(form, first) for first in [True, False][: axes_of(form)]]
            self.of_attribute[attribute] = {**forms, form: axis}
        return axis

    def is_text(self, axis: int) -> bool:
        """Whether the constants of an axis are texts."""
        return self._axes[axis][0] is Form.STRING

    def leads(self, axis: int) -> bool:
        """Whether it is the first or only axis of its dimension."""
        return self._axes[axis][1]
