"""What threads agree with each other by: atomic words, claims, barriers and transactions."""
