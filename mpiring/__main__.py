"""`python -m mpiring`, for where the console script is not on PATH."""

from mpiring.cli import main

if __name__ == "__main__":
    main()
