"""An engine against a plain dictionary: whatever is done in whatever order, both say the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from harken import Engine, Subscription, to_text
from harken.compiler import Texts, compile_texts
from harken.errors import BulkLoadError, DuplicateSubscriptionError, HarkenError, UnknownSubscriptionError
from harken.model.evaluation import truth
from harken.model.subscriptions import Validity
from tests.strategies import events, expressions

DAWN = datetime(2026, 11, 15, tzinfo=UTC)
moments = st.integers(0, 4).map(lambda hours: DAWN + timedelta(hours=hours))
bounds = st.one_of(st.none(), moments)
ids = st.sampled_from(["a", "b", "c", "d", "e", "f"])
owners = st.sampled_from([None, None, "Ann"])
_conditions, _events = expressions(max_leaves=4), events()


# Hypothesis prints the strategies of a rule when it reports; these have a short name.


@st.composite
def conditions(draw):
    return draw(_conditions)


@st.composite
def happenings(draw):
    return draw(_events)


def validity_of(start, end):
    return (
        Validity(start, end)
        if start is None or end is None or start < end
        else Validity(end, start + timedelta(1))
    )


validities = st.builds(validity_of, bounds, bounds)
subscriptions = st.builds(Subscription, ids, conditions(), owners, validities)


class EngineAgainstDictionary(RuleBasedStateMachine):
    """The model is what a reader of the documentation would expect to be registered."""

    def __init__(self):
        super().__init__()
        self.engine = Engine("reference")
        self.model = {}

    @initialize(registered=st.lists(subscriptions, max_size=3, unique_by=lambda each: each.id))
    def start(self, registered):
        self.engine.subscribe_many(registered)
        self.model = {each.id: each for each in registered}

    def _put(self, subscription, *, replace, as_text):
        self.engine.subscribe(
            subscription.id,
            to_text(subscription.expression) if as_text else subscription.expression,
            owner=subscription.owner,
            valid_from=subscription.validity.valid_from,
            valid_until=subscription.validity.valid_until,
            replace=replace,
        )

    @rule(subscription=subscriptions, as_text=st.booleans())
    def subscribe(self, subscription, as_text):
        if subscription.id in self.model:
            with pytest.raises(DuplicateSubscriptionError):
                self._put(subscription, replace=False, as_text=as_text)
        else:
            self._put(subscription, replace=False, as_text=as_text)
            self.model[subscription.id] = subscription

    @rule(subscription=subscriptions, as_text=st.booleans())
    def replace(self, subscription, as_text):
        self._put(subscription, replace=True, as_text=as_text)
        self.model[subscription.id] = subscription

    @rule(id=ids, replace=st.booleans(), text=st.sampled_from(["x ==", "", "x IN ()", "x = 1 OR"]))
    def subscribe_badly(self, id, replace, text):
        with pytest.raises(HarkenError):
            self.engine.subscribe(id, text, replace=replace)

    @rule(rows=st.lists(subscriptions, max_size=4), replace=st.booleans())
    def subscribe_many(self, rows, replace):
        distinct = {row.id for row in rows}
        clash = len(distinct) < len(rows) or distinct & set(self.model)
        if clash and not replace:
            with pytest.raises(BulkLoadError):
                self.engine.subscribe_many(rows)
            return
        assert self.engine.subscribe_many(rows, replace=replace).loaded == len(distinct)
        self.model |= {row.id: row for row in rows}

    @rule(rows=st.lists(subscriptions, max_size=4), bad=ids)
    def subscribe_what_can_be(self, rows, bad):
        report = self.engine.subscribe_many([(bad, "x =="), *rows], on_error="collect")
        taken = {}
        for row in rows:
            if row.id not in self.model:
                taken.setdefault(row.id, row)
        assert report.loaded == len(taken)
        assert len(report.rejects) == 1 + len(rows) - len(taken)
        self.model |= taken

    @rule(subscription=subscriptions)
    def subscribe_compiled(self, subscription):
        texts = Texts([subscription.id], [subscription.expression], [subscription.owner])
        self.engine.subscribe_many(compile_texts(texts).table, replace=True)
        self.model[subscription.id] = Subscription(subscription.id, subscription.expression, subscription.owner)

    @rule(id=ids)
    def unsubscribe(self, id):
        if id in self.model:
            self.engine.unsubscribe(id)
            del self.model[id]
        else:
            with pytest.raises(UnknownSubscriptionError):
                self.engine.unsubscribe(id)

    @rule(several=st.lists(ids, max_size=3))
    def unsubscribe_many(self, several):
        if set(several) <= set(self.model):
            self.engine.unsubscribe_many(several)
            self.model = {id: each for id, each in self.model.items() if id not in several}
        else:
            with pytest.raises(UnknownSubscriptionError):
                self.engine.unsubscribe_many(several)

    @rule(happened=st.lists(happenings(), min_size=1, max_size=3), at=moments)
    def match(self, happened, at):
        wanted = [
            (row, id)
            for row, event in enumerate(happened)
            for id, each in sorted(self.model.items())
            if each.validity.holds_at(at) and truth(each.expression, event) is True
        ]
        table = self.engine.match_batch(happened, at=at)
        found = zip(table.column("event").to_pylist(), table.column("subscription").to_pylist(), strict=True)
        assert sorted(found) == wanted
        looped = [(row, id) for row, e in enumerate(happened) for id in sorted(self.engine.match(e, at=at))]
        assert looped == wanted

    @rule(id=ids, event=happenings(), at=moments)
    def explain(self, id, event, at):
        if id in self.model:
            each = self.model[id]
            wanted = each.validity.holds_at(at) and truth(each.expression, event) is True
            assert self.engine.explain(event, id, at=at).matches is wanted

    @invariant()
    def the_same_ids_owners_and_bounds(self):
        assert len(self.engine) == len(self.model)
        assert set(self.engine) == set(self.model)
        for id, each in self.model.items():
            held = self.engine.subscription(id)
            assert (held.id, held.owner, held.validity) == (id, each.owner, each.validity)


TestEngineAgainstDictionary = EngineAgainstDictionary.TestCase
TestEngineAgainstDictionary.settings = settings(max_examples=40, stateful_step_count=25)
