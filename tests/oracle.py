"""What the tests and benchmarks compare with: written plainly, apart from everything in mpiring."""


def ring_allreduce(comm, sendbuf, recvbuf, scratch):
    """The ring as one writes it by hand: a copy, then Sendrecv of slices in two loops.

    `scratch` holds a chunk: a `size`-th of the buffer, rounded up.
    """
    rank, size = comm.rank, comm.size
    left, right = (rank - 1) % size, (rank + 1) % size
    edges = [len(sendbuf) * i // size for i in range(size + 1)]

    def chunk(i):
        return recvbuf[edges[i % size] : edges[i % size + 1]]

    recvbuf[:] = sendbuf
    for step in range(size - 1):
        target = chunk(rank - step - 1)
        arrived = scratch[: len(target)]
        comm.Sendrecv(chunk(rank - step), right, 0, arrived, left, 0)
        target += arrived
    for step in range(size - 1):
        comm.Sendrecv(chunk(rank + 1 - step), right, 0, chunk(rank - step), left, 0)


def bytes_sent(algorithm, rank, size, count, nodes):
    """Elements that `rank` sends in all, from the closed forms and the lengths of uneven chunks."""

    def lengths(total, parts):
        return [total // parts + (i < total % parts) for i in range(parts)]

    if algorithm == "naive":
        return (size - 1) * count
    if algorithm == "reduce_scatter":
        mine = lengths(count, size)[rank]
        return (count - mine) + (size - 1) * mine
    if algorithm == "ring":  # all chunks but one in each half
        chunks = lengths(count, size)
        return 2 * count - chunks[(rank + 1) % size] - chunks[(rank + 2) % size]
    assert algorithm == "tree"
    index = next(i for i, node in enumerate(nodes) if rank in node)
    place, peers, groups = nodes[index].index(rank), len(nodes[index]), len(nodes)
    shares = min(map(len, nodes))
    parts = 1 if groups == 2 else groups  # of a share; two nodes swap it whole
    pieces = lengths(count, shares * parts)
    share = [sum(pieces[i * parts : (i + 1) * parts]) for i in range(shares)]
    if place >= shares:
        return count
    inside = (count - share[place]) + (peers - 1) * share[place]
    if groups == 2:
        return inside + share[place]
    mine = pieces[place * groups + index]
    return inside + (share[place] - mine) + (groups - 1) * mine
