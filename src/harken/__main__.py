"""`python -m harken` is the command line."""

from harken.cli.main import main

main()
