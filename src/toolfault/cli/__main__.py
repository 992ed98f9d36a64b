"""`python -m toolfault.cli`."""

from toolfault.cli import main

main()
