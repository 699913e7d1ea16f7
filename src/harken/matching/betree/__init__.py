"""BE-Tree: the space of events cut by attribute, then by value, in turns (Sadoghi and Jacobsen 2011)."""
