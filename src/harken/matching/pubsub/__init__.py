"""PUBSUB: structures over attributes, level by level, with buckets of clauses (Mishra and Sahni)."""
