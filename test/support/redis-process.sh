# A private redis-server for tests: redis-process.sh keep|remove DIR ARG…
# Prints the server's process id, and ends the server once standard input does: with the process that
# started it, however that one ends. SIGKILL, because a test may have paused the server.
after=$1
dir=$2
shift 2
redis=$(command -v redis-server || command -v valkey-server) || exit 127
"$redis" "$@" --dir "$dir" </dev/null >"$dir/log" 2>&1 &
server=$!
echo "$server"
exec >/dev/null 2>&1
cat >/dev/null
kill -KILL "$server"
wait "$server"
[ "$after" = keep ] || rm -rf "$dir"
