"""What is compiled of Siena's forwarding."""
