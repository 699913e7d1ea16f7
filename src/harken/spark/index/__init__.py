"""Indexes of stored subscriptions: parts that workers map, laid over each other so that a small change is cheap.

`building` makes the parts of a version, on workers; `layers` says which parts make up an index; `worker_cache`
holds open, in each worker, what its tasks match against; `frames` is the index of subscriptions that no folder
holds.
"""
