"""What figures are held against: PASS or FAIL beside each, and the exit status in the end."""

import sys


class Targets:
    """Judges figures, and remembers which miss their target."""

    def __init__(self):
        self.missed = []

    def judge(self, what, met):
        """Return PASS, or FAIL where a target is not met."""
        if not met:
            self.missed.append(what)
        return "PASS" if met else "FAIL"

    def leave(self):
        """End this process, with 1 where a target is missed."""
        sys.exit(bool(self.missed))
