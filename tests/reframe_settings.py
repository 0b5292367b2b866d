"""The local system for ReFrame: no batch system, and the mpirun on PATH, or what a test names."""

import os

site_configuration = {
    "systems": [
        {
            "name": "here",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "local",
                    "scheduler": "local",
                    "launcher": os.environ.get("LAUNCHER", "mpirun"),
                    "environs": ["builtin"],
                }
            ],
        }
    ],
    "environments": [{"name": "builtin"}],
}
