# shellcheck shell=bash disable=SC2154 # of state and variable, which whoever sources this sets
# Sourced by scripts that build something in PID namespaces of its own, which ends with the first process
# in them. That one writes its number and when it began to $state/first, with print_process. Whoever sources
# this sets state, a folder of the script's own, and variable, the name of the variable that it is set by.

mark=made-by-${0##*/} # a file that is in folders of ours alone

# Print the comment on top of the script.
usage() {
    sed -n '2,/^set -eu/ { s/^# \{0,1\}//p }' "$0"
}

need_root() { # REASON
    [ "$(id -u)" = 0 ] || fail "needs root, $1"
}

# Nothing is ended or removed by what stands in a folder that somebody else has filled.
need_own_state() {
    [ ! -e "$state" ] || [ -f "$state/$mark" ] || { [ -d "$state" ] && [ -z "$(ls -A "$state")" ]; } ||
        fail "$state is not a folder of ${0##*/}'s own: set $variable to one that is not there yet"
}

# Make the folder, if need be, and keep others of this script out of it until this process ends. What
# outlives this process has to close $lock. Whoever waited may find that the file went with the folder.
take_state() {
    lock=
    until [ "$state/$mark" -ef "/dev/fd/$lock" ]; do
        { (umask 077 && mkdir -p "$state" && : >>"$state/$mark") && exec {lock}<"$state/$mark"; } 2>/dev/null ||
            fail "cannot write $state: set $variable to a folder that can be made"
        flock --wait 10 "$lock" || fail "another ${0##*/} is at work in $state"
    done
}

# End what runs, and empty the folder.
clear_state() {
    end_first_process
    find "$state/" -mindepth 1 -maxdepth 1 ! -name "$mark" -exec rm -rf {} +
}

# The mark goes last, so that what is cut short can be done again.
remove_state() {
    clear_state
    rm -rf "$state"
}

# Print this process's number as whoever mounted /proc sees it, and when it began. Only builtins: a
# subshell would be another process.
print_process() {
    local stat fields
    read -r stat </proc/self/stat
    read -ra fields <<<"${stat##*) }"
    echo "${stat%% *} ${fields[19]}"
}

# Print the number of the first process, if it lives and does not end just now (a flag of the kernel's):
# its number may belong to another one by now, which then began at another time.
first_process() {
    local pid started stat
    { read -r pid started <"$state/first" && read -r stat <"/proc/$pid/stat"; } 2>/dev/null || return 1
    read -ra stat <<<"${stat##*) }"
    [ "${stat[19]}" = "$started" ] && ((!(stat[6] & 4))) && echo "$pid"
}

# End the first process. All namespaces lie within that of this process, and the kernel ends them with it.
# It waits for all to be buried; where the machine's first process never does so (in some containers),
# what was killed before stays a zombie, and nothing is gained by waiting longer.
end_first_process() {
    local pid tries
    pid=$(first_process) || return 0
    kill -KILL "$pid" 2>/dev/null || true
    for ((tries = 0; tries < 100; tries++)); do
        grep -qs '^State:.[^Z]' "/proc/$pid/status" || break
        sleep 0.02
    done
}

# The first process of a namespace inherits its orphans, and has to bury them.
stay() {
    exec env --ignore-signal=CHLD sleep infinity >/dev/null 2>&1
}
