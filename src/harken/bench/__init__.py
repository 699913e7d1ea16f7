"""Experiments: measured side by side in one run, as ratios with repeats, and checked against the reference."""
