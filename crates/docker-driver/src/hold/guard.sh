# Pauses a container, and is certain to thaw it; see `guard.rs`.
#
# $1 is docker; $2 the container; $3 the longest hold, in seconds; $4 the path
# of the lock, or nothing; $5 and $6 how long docker may take to pause and to
# thaw, in seconds; from $7 on, patterns of what docker says of a container
# that cannot be frozen.
#
# Standard input is a socket to the holder. It carries what is reported, and
# its end is what ends the hold. Standard output and error are locked files
# that stay locked while this runs: the one of the path, and one of the folder
# of docker's configuration.

# Nothing that ends our holder, or a copy, ends us; nor does it that nobody
# listens any more.
trap '' HUP INT QUIT TERM PIPE
exec 3<&0 4>&1 5>&2 1>&0 2>&1 </dev/null

docker=$1 container=$2 seconds=$3 lock=$4 to_pause=$5 to_thaw=$6
shift 6

# What is started in the background is started by `exec`: not every shell does
# without one of its own around it, which would be killed in its place.

# Runs docker for $2 seconds at most; leaves its words and its exit code.
attempt() {
    printf '\036%s\n' "$1"
    # Only this shell may hold on to the socket, and what a shell says of
    # children that were killed is nobody's words.
    words=$(exec 3<&- 2>/dev/null; bounded "$@")
    code=$?
    printf '%s\n\036ended %s\n' "$words" "$code"
}

# Docker's words and its exit code are this function's. A docker that takes too
# long is killed, and a mark after its words says so. It is waited for by one
# shell and its time by another: a shell can wait for one thing only, and none
# of what was started here may outlive this.
bounded() {
    exec sleep "$2" 4>&- 5>&- >/dev/null &
    timer=$!
    (
        late=
        trap 'late=1; kill -s KILL "$client"' USR1
        exec "$docker" "$1" "$container" 2>&1 >/dev/null &
        client=$!
        wait "$client"
        code=$?
        if [ -n "$late" ]; then
            # What was waited for last was that signal.
            wait "$client"
            printf '\n\036overdue\n'
            exit 137
        fi
        kill -s KILL "$timer"
        exit "$code"
    ) &
    runner=$!
    wait "$timer"
    # It was not killed, so docker has not ended.
    [ "$?" -gt 128 ] || kill -s USR1 "$runner"
    wait "$runner"
}

is_thawed() {
    [ "$code" -eq 0 ] && return 0
    for pattern; do
        # shellcheck disable=SC2254 # it is a pattern
        case $words in *$pattern*) return 0 ;; esac
    done
    return 1
}

attempt pause "$to_pause"
[ "$code" -eq 0 ] || exit 1
# Says to whoever finds the lock that the pause was ours.
[ -z "$lock" ] || echo paused >&4

exec sleep "$seconds" 3<&- 4>&- 5>&- >/dev/null 2>&1 &
timer=$!
{
    # Nothing is ever written, so this returns at the end.
    read -r _
    kill -s KILL "$timer"
} <&3 3<&- 4>&- 5>&- >/dev/null 2>&1 &
watcher=$!
wait "$timer" 2>/dev/null
status=$?

printf '\036thaws\n'
# Copies are of our group, and do not ignore it.
kill -s TERM 0
if [ "$status" -le 128 ]; then
    # Our time is over, and our holder may have been stopped. Then a copy that
    # waits for it to read does not heed that signal; nor this one, if our
    # holder ignores it; but the last one it does.
    kill -s KILL "$watcher"
    kill -s HUP 0
    sleep 1 3<&-
    kill -s QUIT 0
fi
result=1
for rest in 0 1 2 4 no; do
    attempt unpause "$to_thaw"
    if is_thawed "$@"; then
        [ -z "$lock" ] || rm -f -- "$lock"
        result=0
        break
    fi
    [ "$rest" = no ] || sleep "$rest" 3<&-
done
# Not every system reaps the dead children that it inherits.
wait
exit "$result"
