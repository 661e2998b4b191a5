# Runs a Redis server until standard input is closed: embedded.sh FOLDER SOCKET
# Prints a line once the server is being started; ends with the server's status, or
#   69  there is neither flock nor perl on the PATH
#   75  another process has this folder's lock
#   127 there is no redis-server on the PATH
folder=$1
socket=$2
umask 077
exec 2>>"$folder/redis.log"
# Only the end of standard input, or of the server, ends this: not a terminal's Ctrl-C.
trap '' HUP INT TERM
redis=$(command -v redis-server || command -v valkey-server) || exit 127
command -v flock >/dev/null || command -v perl >/dev/null || exit 69

# Takes the lock on descriptor 9, unless another process has it. The flock of BusyBox has no -w; macOS has none at all.
take_lock() {
  if command -v flock >/dev/null; then
    flock -n 9
  else
    perl -e 'use Fcntl ":flock"; open(my $lock, ">&=", 9) or exit 1; flock($lock, LOCK_EX | LOCK_NB) or exit 1'
  fi
}

exec 9>>"$folder/lock"
take_lock || exit 75
echo "$PPID" >"$folder/lock"
# For the watcher below, which must not fail because the folder is removed meanwhile.
exec 8>>"$folder/lock"

"$redis" --port 0 --unixsocket "$socket" --unixsocketperm 700 --dir "$folder" --daemonize no \
  --appendonly yes --appendfsync always --save '' --maxmemory-policy noeviction --hash-max-listpack-value 256 \
  </dev/null >&2 8>&- &
server=$!
# The server has inherited the lock; from now on it is held exactly as long as the server lives.
exec 9>&8 8>&-
echo started

# A background job's standard input is /dev/null unless it is handed over.
exec 3<&0
(
  exec >/dev/null
  while read -r _; do :; done
  # Signals are sent only while the lock is held: afterwards the PID may belong to another process.
  take_lock && exit
  kill -TERM "$server"
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    sleep 1
    # A server that was started since then may have the lock.
    take_lock && exit
    kill -0 "$server" 2>/dev/null || exit
  done
  kill -KILL "$server"
) <&3 &
watcher=$!
exec 3<&- 9>&- </dev/null

wait "$server"
status=$?
kill -KILL "$watcher" 2>/dev/null
exit "$status"
