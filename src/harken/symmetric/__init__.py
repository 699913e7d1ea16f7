"""Symmetric publish/subscribe: publications are constraints too (Tomasic et al. 2006)."""
