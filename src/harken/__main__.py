"""The command line: `harken`, or `python -m harken`."""

import sys


def main() -> None:
    """Run a verb. An interrupt is no error, not even while modules are being imported."""
    try:
        from harken.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
