"""`python -m headrace ARGUMENTS` is the program headrace that belongs to this package."""
import os
import sys

from headrace._program import ProgramMissing, program


def main():
    try:
        found = program()
        os.execv(found, [found, *sys.argv[1:]])
    except (ProgramMissing, OSError) as error:
        sys.exit(f"python -m headrace: {error}")


main()
