#!/usr/bin/env bash
# Runs jest with the given arguments on testcontainers, for real: ci-containers.sh ARG…
# Where no Docker engine answers it starts one of its own; the image is made of this machine's redis-server,
# so that nothing is pulled. Where that cannot be, it says "skipped: reason" and exits 0.
set -euo pipefail

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
  rm -rf "$work" || true
}
trap cleanup EXIT

command -v docker >/dev/null || skip 'no docker on the PATH'
export DOCKER_HOST=${DOCKER_HOST:-unix:///var/run/docker.sock}
if ! timeout 5 docker version >/dev/null 2>&1; then
  command -v dockerd >/dev/null || skip 'no Docker engine answers, and there is no dockerd to start'
  [ "$(id -u)" = 0 ] || skip 'no Docker engine answers, and only root may start one'
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

# The image: the server, its client, a shell, and the libraries they are linked to.
root=$work/root
mkdir -p "$root/bin" "$root/tmp" "$root/data"
for program in redis-server redis-cli sh; do
  file=$(command -v "$program") || skip "no $program on the PATH"
  cp -L "$file" "$root/bin/$program"
  ldd "$file" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -Ln "$library" "$root$library"
  done
done
tar -C "$root" -c . | docker import --change 'ENV PATH=/bin' --change 'CMD ["redis-server"]' - local/redis:7 >/dev/null ||
  skip 'the Docker engine takes no image'
timeout 60 docker run --rm --network none local/redis:7 redis-server --version ||
  skip 'the Docker engine runs no container here'

TEST_REDIS=testcontainers REDIS_TEST_IMAGE=local/redis:7 TESTCONTAINERS_RYUK_DISABLED=true \
  TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1 npm test -- --coverage=false "$@"
