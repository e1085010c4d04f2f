"""``python -m entrepot``: the command line."""

from __future__ import annotations

from entrepot.cli import main

if __name__ == "__main__":
    main()
