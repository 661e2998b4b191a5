# npm run redis:install: sees to it that a redis-server (or valkey-server) is on the PATH.
set -eu

found() {
  command -v redis-server || command -v valkey-server
}

run() {
  echo "redis:install: running: $*"
  "$@"
}

if server=$(found); then
  echo "redis:install: $server is there, nothing to do"
  exit 0
fi

if [ "$(id -u)" = 0 ]; then
  as_root=env
else
  as_root=$(command -v sudo || true)
fi

if [ -n "$as_root" ] && command -v apt-get >/dev/null; then
  # Old lists may still do.
  run "$as_root" apt-get update -q || true
  run "$as_root" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends redis-server
elif command -v brew >/dev/null; then
  run brew install redis
else
  echo "redis:install: no redis-server or valkey-server on the PATH, and no way to install one from here." >&2
  echo "redis:install: install the system's package (redis, redis-server or valkey; as root: apt-get install redis-server, dnf install valkey, apk add redis), or set REDIS_URL to a Redis 7.0+ or Valkey 7.2+." >&2
  exit 1
fi

if server=$(found); then
  echo "redis:install: installed $server ($("$server" --version))"
else
  echo "redis:install: the package was installed, but no redis-server is on the PATH ($PATH): add its folder" >&2
  exit 1
fi
