# npm run redis:install: sees to it that a redis-server (or valkey-server) is on the PATH, and new enough.
set -eu

found() {
  command -v redis-server || command -v valkey-server
}

run() {
  echo "redis:install: running: $*"
  "$@"
}

# Says which version the server is, and ends where the bridge could not use it.
judge() { # judge SERVER WHAT-BECAME-OF-IT
  output=$("$1" --version)
  version=$(printf '%s\n' "$output" | sed -n 's/.* v=\([0-9]*\.[0-9]*\)[. ].*/\1/p')
  major=${version%.*}
  minor=${version#*.}
  case $output in
    Valkey*) name=Valkey needed=702 ;;
    *) name=Redis needed=700 ;;
  esac
  if [ -z "$version" ]; then
    echo "redis:install: $1 $2; the bridge needs Redis 7.0+ or Valkey 7.2+, and its version cannot be read from \"$output\"" >&2
  elif [ $((major * 100 + minor)) -lt "$needed" ]; then
    echo "redis:install: $1 $2, but it is $name $version, and the bridge needs Redis 7.0+ or Valkey 7.2+." >&2
    echo "redis:install: upgrade it, put a newer one before it on the PATH, or set REDIS_URL to a newer one." >&2
    exit 1
  else
    echo "redis:install: $1 $2: $name $version"
  fi
}

if server=$(found); then
  judge "$server" 'is there, nothing to do'
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
  judge "$server" 'is installed'
else
  echo "redis:install: the package was installed, but no redis-server is on the PATH ($PATH): add its folder" >&2
  exit 1
fi
