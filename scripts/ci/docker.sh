# Sourced by what needs a Docker engine. Starts one where none responds; nothing is ever pulled: images are made of
# the programs on this machine. Where that is impossible, says "skipped: reason" and exits 0.

skip() {
  echo "skipped: $*"
  exit 0
}

work=$(mktemp -d)
engine=''
cleanup() {
  if [ -n "$engine" ]; then
    kill "$engine" 2>/dev/null || true
    wait "$engine" 2>/dev/null || true
  fi
  umount "$work"/exec/netns/* 2>/dev/null || true
  rm -rf "$work" || true
}
trap cleanup EXIT

command -v docker >/dev/null || skip 'no docker on the PATH'
export DOCKER_HOST=${DOCKER_HOST:-unix:///var/run/docker.sock}
if ! timeout 5 docker version >/dev/null 2>&1; then
  command -v dockerd >/dev/null || skip 'no Docker engine responds, and there is no dockerd to start'
  [ "$(id -u)" = 0 ] || skip 'no Docker engine responds, and only root may start one'
  export DOCKER_HOST=unix://$work/docker.sock
  dockerd --ip 127.0.0.1 --host "$DOCKER_HOST" --data-root "$work/data" --exec-root "$work/exec" \
    --pidfile "$work/docker.pid" >"$work/dockerd.log" 2>&1 &
  engine=$!
  for ((tries = 0; tries < 150; tries++)); do
    docker version >/dev/null 2>&1 && break
    kill -0 "$engine" 2>/dev/null || break
    sleep 0.2
  done
  docker version >/dev/null 2>&1 || skip "dockerd does not run here ($(grep -v level=info "$work/dockerd.log" | tail -n 1))"
fi

# Copies programs into a root folder, under the same paths, with the libraries that they are linked to.
copy_programs() { # copy_programs ROOT PROGRAM…
  local root=$1 program file library
  shift
  for program in "$@"; do
    file=$(command -v "$program") || skip "no $program on the PATH"
    mkdir -p "$root/usr/bin"
    cp -L "$file" "$root/usr/bin/$(basename "$program")"
    # A script has none.
    for library in $(ldd "$file" 2>/dev/null | grep -o '/[^ ]*' || true); do
      mkdir -p "$root$(dirname "$library")"
      cp -Ln "$library" "$root$library"
    done
  done
  mkdir -p "$root/bin"
  cp -Ln "$root/usr/bin/sh" "$root/bin/sh"
  install -d -m 1777 "$root/tmp"
}

import_image() { # import_image ROOT TAG OPTION…
  local root=$1 tag=$2
  shift 2
  tar -C "$root" -c . | docker import "$@" - "$tag" >/dev/null || skip 'the Docker engine does not import images'
}
