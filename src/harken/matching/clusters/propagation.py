"""Propagation (Fabret et al. 2000, section 2): clusters under single predicates, by size."""

from __future__ import annotations

from harken.matching.clusters.matcher import ClusterMatcher


class PropagationMatcher(ClusterMatcher):
    """Each clause stands under the one predicate that the fewest events satisfy.

    `prefetch` asks for memory ahead of its use, as the paper's propagation_wp does.
    """
