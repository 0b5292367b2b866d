#!/usr/bin/env python3
"""Whether `topology measure` finds two hosts, and the rates inside and between them within 10 %.

Needs root and iproute2, as scripts/cluster does. The rate between hosts is held against what their
links are limited to, less the headers; that inside a host against jobs of its two ranks alone. All
are medians of runs in turn. Leaves with 1 where a limit is missed.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from statistics import median

from targets import Targets

CLUSTER = Path(__file__).parent / "cluster"
# Of 1514 bytes in a frame of Ethernet, TCP and IP with time stamps leave 1448 for data.
LINK = 0.125 * 1448 / 1514
WITHIN = 0.10
ROUNDS = 5


def cluster(*arguments):
    """Run scripts/cluster, and return what it prints."""
    return subprocess.run(
        [CLUSTER, *arguments], stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def measure(ranks, *placement):
    """Return the levels that are found on so many ranks."""
    command = ["mpiring", "topology", "measure", "-q", "--one-by-one", "--format", "json"]
    return json.loads(cluster("run", *placement, "mpirun", "-n", str(ranks), *command))["levels"]


def main():
    """Print the table, and leave with 1 where a limit is missed."""
    targets = Targets()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MPIRING_CLUSTER"] = f"{folder}/cluster"
        try:
            cluster("up", "--hosts", "2", "--ranks", "2", "--rate", "1gbit")
            print("rates in GB/s" + f"{'found':>15} {'limit':>9} {'ratio':>7}")
            rates, inside = {"within node": [], "beyond node": []}, []
            for _ in range(ROUNDS):
                inside.append(measure(2)[0]["GBps"]["median"])
                for placement, groups in (([], [[0, 1], [2, 3]]), (["--deal"], [[0, 2], [1, 3]])):
                    levels = measure(4, *placement)
                    if [level["groups"] for level in levels] != [groups, [[0, 1, 2, 3]]]:
                        found = [level["groups"] for level in levels]
                        print(f"found {found}  {targets.judge('levels', met=False)}")
                        continue
                    for name, level in zip(rates, levels, strict=True):
                        rates[name].append(level["GBps"]["median"])
            for name, limit in (("within node", median(inside)), ("beyond node", LINK)):
                found = median(rates[name] or [0.0])
                verdict = targets.judge(name, abs(found / limit - 1) <= WITHIN)
                print(f"{name:<13} {found:14.4f} {limit:9.4f} {found / limit:7.2f}  {verdict}")
        finally:
            cluster("down")
    targets.leave()


if __name__ == "__main__":
    main()
