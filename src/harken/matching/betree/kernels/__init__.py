"""What is compiled of BE-Tree."""
