# Pauses a container, and is certain to thaw it; see `guard.rs`.
#
# $1 is docker; $2 the container; $3 the longest hold, in seconds; $4 the path
# of the lock, or nothing; from $5 on, patterns of what docker says of a
# container that cannot be frozen.
#
# Standard input is a socket to the holder. It carries what is reported, and
# its end is what ends the hold. Standard output and error are locked files
# that stay locked while this runs: the one of the path, and one of the folder
# of docker's configuration.

# Nothing that ends our holder, or a copy, ends us; nor does it that nobody
# listens any more.
trap '' HUP INT QUIT TERM PIPE
exec 3<&0 4>&1 5>&2 1>&0 2>&1 </dev/null

docker=$1 container=$2 seconds=$3 lock=$4
shift 4

# Runs docker; leaves its words and its exit code.
attempt() {
    printf '\036%s\n' "$1"
    words=$("$docker" "$1" "$container" 2>&1 >/dev/null 3<&-)
    code=$?
    printf '%s\n\036ended %s\n' "$words" "$code"
}

is_thawed() {
    [ "$code" -eq 0 ] && return 0
    for pattern; do
        # shellcheck disable=SC2254 # it is a pattern
        case $words in *$pattern*) return 0 ;; esac
    done
    return 1
}

attempt pause
[ "$code" -eq 0 ] || exit 1
# Says to whoever finds the lock that the pause was ours.
[ -z "$lock" ] || echo paused >&4

sleep "$seconds" 3<&- 4>&- 5>&- >/dev/null 2>&1 &
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
    attempt unpause
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
