#!/usr/bin/env bash
# Builds the container image and runs it the way production should: read-only, without capabilities, as an arbitrary
# user, next to a Redis; then by Docker Compose. Prints the size of the image and how long starting and stopping take.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/ci/docker.sh

fail() {
  echo "FAILED: $*" >&2
  docker logs "$bridge" >&2 || true
  exit 1
}

expect() { # expect WHAT PATTERN TEXT
  grep -qE "$2" <<<"$3" || fail "$1: expected $2, got: $3"
  echo "ok: $1"
}

# The base image: Node 24 as the package registry has it, this machine's npm, and what the Dockerfile runs.
base=$work/base
copy_programs "$base" sh env ln mkdir
node=$(readlink -f "$(npx -y -p node@24 which node)")
PATH=$(dirname "$node"):$PATH copy_programs "$base" node
# What sharp loads at run time.
libc=$(ldd "$node" | grep -o '/[^ ]*/libc\.so\.6')
cp -L "$(dirname "$libc")/libresolv.so.2" "$base$(dirname "$libc")"
mkdir -p "$base/usr/lib/node_modules" "$base/usr/local/bin" "$base/etc"
cp -r "$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")" "$base/usr/lib/node_modules/npm"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$base/usr/bin/npm"
environment=(--change 'ENV PATH=/usr/local/bin:/usr/bin:/bin')
if [ -n "${NODE_EXTRA_CA_CERTS:-}" ]; then
  cp -L "$NODE_EXTRA_CA_CERTS" "$base/etc/ca.pem"
  environment+=(--change 'ENV NODE_EXTRA_CA_CERTS=/etc/ca.pem')
fi
import_image "$base" local/node:24 "${environment[@]}"
copy_programs "$work/redis" redis-server redis-cli sh
import_image "$work/redis" local/redis:7 --change 'CMD ["redis-server"]'

docker build --network host --build-arg NODE_IMAGE=local/node:24 --tag local/profile-bridge . >"$work/build.log" 2>&1 ||
  { tail -n 30 "$work/build.log" >&2; exit 1; }
size() { docker image inspect --format '{{.Size}}' "$1"; }
echo "image: $((($(size local/profile-bridge) - $(size local/node:24)) / 1000000)) MB on top of the base image"

network=bridge-ci-$$ redis=redis-ci-$$ bridge=bridge-ci-$$
clean_up_containers() {
  docker rm -fv bridge-ci-$$ "$redis" >/dev/null 2>&1 || true
  docker network rm "$network" >/dev/null 2>&1 || true
  cleanup
}
trap clean_up_containers EXIT
docker network create "$network" >/dev/null
docker run --detach --name "$redis" --network "$network" --network-alias redis local/redis:7 \
  redis-server --protected-mode no --appendonly yes >/dev/null

now() { date +%s%3N; }
started=$(now)
docker run --detach --name "$bridge" --network "$network" --publish 127.0.0.1::8080 \
  --read-only --tmpfs /tmp --volume /data --user 54321:0 --cap-drop ALL --security-opt no-new-privileges \
  --health-interval 1s --env REDIS_URL=redis://redis:6379 --env PORT= local/profile-bridge >/dev/null
url=http://$(docker port "$bridge" 8080/tcp)
until curl --silent --fail "$url/readyz" >/dev/null; do
  [ $(($(now) - started)) -lt 30000 ] || fail 'not ready within 30 s'
  sleep 0.1
done
echo "start: ready after $(($(now) - started)) ms"

admin() { docker exec "$bridge" profile-bridge admin "$@"; }
expect 'the version' '^[0-9]+\.[0-9]+\.[0-9]+$' "$(docker exec "$bridge" profile-bridge --version)"
new_key() { # new_key ORGANIZATION
  admin org set "$1" >/dev/null
  admin key create --org "$1" --role player --user u1 --json | node -p 'JSON.parse(require("fs").readFileSync(0)).apiKey'
}
call() { # call ORGANIZATION OPTION…
  curl --silent --show-error "$url/api/profile/" -H "x-api-key: $key" -H "x-platform-organization-id: $1" "${@:2}"
}
key=$(new_key acme)
base64 --decode >"$work/picture.png" <<<'iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAMAAABEpIrGAAAAA1BMVEX/Y0e/iuVgAAAACXBIWXMAAAPoAAAD6AG1e1JrAAAAE0lEQVQ4jWNgGAWjYBSMAgasAAAEIAABMVaGxQAAAABJRU5ErkJggg=='
expect 'an upload, on a read-only root file system' '"profilePictureUrl":"http://localhost:8080/media/' \
  "$(call acme -X PUT -F username=ada -F "profilePicture=@$work/picture.png")"
expect 'the profile' '^\{"username":"ada",' "$(call acme)"
expect 'a warning that PUBLIC_BASE_URL is not set' 'PUBLIC_BASE_URL is not set' "$(docker logs "$bridge" 2>&1)"
health() { docker inspect --format '{{.State.Health.Status}}' "$bridge"; }
while [ "$(health)" = starting ]; do sleep 0.2; done
expect 'the health check' '^healthy$' "$(health)"
expect 'an arbitrary user without capabilities' '^54321 0 0000000000000000$' "$(docker exec "$bridge" node -p \
  'process.getuid() + " " + process.getgid() + " " + /CapEff:\t(\w+)/.exec(fs.readFileSync("/proc/self/status", "utf8"))[1]')"

stopped=$(now)
docker stop "$bridge" >/dev/null
echo "stop: $(($(now) - stopped)) ms"
expect 'the exit code after docker stop' '^0$' "$(docker inspect --format '{{.State.ExitCode}}' "$bridge")"

. scripts/ci/compose.sh
