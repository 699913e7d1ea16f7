"""A stream of events is matched batch by batch, and every match told once: the ledger says which batch met what.

`stream` runs a batch, `ledger` and `checkpoints` remember what was decided, `retained_events` keeps events that
later subscriptions may still meet, `sinks` take the matches, and `operating` is for those who mend a stream.
"""
