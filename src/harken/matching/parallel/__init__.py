"""How several threads share the work of matching (Farroukh et al. 2009): who does what, and how they agree on it.

What is asked for (`options`) comes in; `team` runs it on threads that are kept, `latency` moves threads between
throughput and latency, and the kernels claim work, meet at barriers and run transactions. What the work is they
do not know: clusters/ and encoding/ bring it. Nothing here imports any other part of matching.
"""
