"""The command line: `harken`, or `python -m harken`."""

import sys


def main() -> None:
    """Run a verb. An interrupt is no error, not even while modules are being imported."""
    try:
        from harken.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        # An interrupt that came out of a text being executed, as dataclasses do with the methods they make, is one
        # nobody handled to Python: it would end itself by that signal, whatever the status. Executing another
        # text makes it forget.
        exec("")


if __name__ == "__main__":
    main()
