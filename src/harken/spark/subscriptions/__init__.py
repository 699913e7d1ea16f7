"""Subscriptions on shared storage: every change is a version, and readers and writers do not wait for each other.

Rows and frames go in (`compiling`, `writing`), files and small version files lie there (`segments`, `versions`,
`snapshots`), compiled tables come out (`reading`). What nobody can need any more goes (`merging`, `retention`).
"""
