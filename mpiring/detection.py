"""The topology that MPI knows of, and what Slurm says of the switches above it."""

import os

from mpi4py import MPI

from mpiring.switches import ADDRESS, with_addresses
from mpiring.topology import Level, Topology, grouped


def detect_topology(comm: MPI.Intracomm) -> Topology:
    """Return the nodes of `comm`, and what Slurm says is above them. Collective.

    A node is a group of ranks that can share memory. What MPI knows of the inside of nodes is left
    out: a library may know it or not, and knows it of bound ranks alone, so the same algorithm on
    the same ranks would take other rounds with another library or another binding.
    """
    node = comm.Split_type(MPI.COMM_TYPE_SHARED, key=comm.rank)
    first = node.bcast(comm.rank)
    node.Free()
    address = os.environ.get(ADDRESS, ""), os.environ.get(f"{ADDRESS}_PATTERN", "")
    firsts, hosts, addresses = zip(
        *comm.allgather((first, MPI.Get_processor_name(), address)), strict=True
    )
    nodes = Level("node", grouped(firsts), source="MPI")
    return with_addresses(Topology(comm.size, (nodes,), source="MPI"), hosts, addresses)


INSIDE = {"cache": "l3cache", "numa": "numanode", "socket": "socket"}
"""Levels inside a node, and what MPICH, Open MPI and Intel MPI all call them."""


def detect_inside(comm: MPI.Intracomm, topology: Topology) -> Topology:
    """Return the topology with those levels inside its nodes that MPI knows. Collective.

    Of ranks that are not bound to cores, MPICH knows none; Open MPI says that each is alone, and
    Intel MPI that all of a node are together, as of levels that it does not know. Neither tells
    anything, so nothing of it is kept.
    """
    node = comm.Split_type(MPI.COMM_TYPE_SHARED, key=comm.rank)
    mine = [_first_inside(node, comm.rank, name) for name in INSIDE.values()]
    node.Free()
    levels = [
        Level(name, grouped(firsts), source="MPI")
        for name, firsts in zip(INSIDE, zip(*comm.allgather(mine), strict=True), strict=True)
        if None not in firsts
    ]
    return topology.with_inside(levels)


def _first_inside(node: MPI.Comm, rank: int, resource: str) -> int | None:
    """Return the lowest rank that shares a resource of this node; None where MPI does not know."""
    info = MPI.Info.Create({"mpi_hw_resource_type": resource})
    try:
        group = node.Split_type(MPI.COMM_TYPE_HW_GUIDED, key=node.rank, info=info)
    except MPI.Exception:  # of an MPI older than 4
        return None
    finally:
        info.Free()
    if group == MPI.COMM_NULL:
        return None
    first: int = group.bcast(rank)
    group.Free()
    return first
