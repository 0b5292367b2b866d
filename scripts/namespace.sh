# Sourced by scripts that build something in PID namespaces of its own, which ends with the first process
# in them. That one writes its number and when it began to $state/first, with print_process.

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
    # shellcheck disable=SC2154 # whoever sources this sets state
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
