"""The loops that count, and that prove a file to hold what they expect."""
