# Sourced by image.sh, which makes the images: starts compose.yaml and scripts/deploy/compose.yaml as their comments
# say, apart from the ports on the host, and uses what they start.

# Starts the services of a compose file in a folder, as a project of this name.
compose_up() { # compose_up PROJECT FILE
  project=$1
  mkdir -p "$work/$project"
  sed -e "s/'127.0.0.1:808[01]:/'127.0.0.1::/" -e 's|image: redis:7|image: local/redis:7|' \
    -e "s|build: .*|image: local/profile-bridge|; /image: \${IMAGE/d" "$2" >"$work/$project/compose.yaml"
  compose up --detach --no-build >"$work/compose.log" 2>&1 ||
    fail "$2 does not start: $(tail -n 3 "$work/compose.log"; compose logs redis | tail -n 5)"
  bridge=$(compose ps --quiet bridge)
  until_ready || fail "$2 is not ready within a minute"
}

# The port on the host is another one after each start.
until_ready() {
  local tries
  for ((tries = 0; tries < 300; tries++)); do
    url=http://$(docker port "$bridge" 8080/tcp 2>/dev/null)
    curl --silent --fail "$url/readyz" >/dev/null && return
    sleep 0.2
  done
  return 1
}

compose() { docker-compose --project-name "$project" --file "$work/$project/compose.yaml" "$@"; }

compose_down() {
  compose down --volumes >"$work/compose.log" 2>&1 || fail "$(tail -n 3 "$work/compose.log")"
}

trial=trial$$ production=production$$
trap 'for project in $trial $production; do compose down --volumes >/dev/null 2>&1 || true; done; clean_up_containers' EXIT

compose_up "$trial" compose.yaml
key=$(new_key demo)
expect 'compose.yaml: a picture URL for browsers on this machine' '"profilePictureUrl":"http://localhost:8080/media/' \
  "$(call demo -X PUT -F "profilePicture=@$work/picture.png")"
compose_down

mkdir -p "$work/$production/secrets"
(
  cd "$work/$production"
  umask 077
  openssl rand -hex 32 >secrets/redis-password
  printf 'requirepass %s\n' "$(cat secrets/redis-password)" >secrets/redis.conf
  openssl rand -hex 32 >secrets/admin-token
  chown 1000 secrets/redis-password secrets/admin-token && chown 999 secrets/redis.conf
)
export PUBLIC_BASE_URL=https://profiles.example.com
compose_up "$production" scripts/deploy/compose.yaml
key=$(new_key acme)
expect 'scripts/deploy/compose.yaml: an upload' '"profilePictureUrl":"https://profiles.example.com/media/' \
  "$(call acme -X PUT -F username=ada -F "profilePicture=@$work/picture.png")"
admin_url=http://$(docker port "$bridge" 8081/tcp)
expect 'the admin port without the token' '^401$' "$(curl --silent --output /dev/null --write-out '%{http_code}' "$admin_url/metrics")"
expect 'the admin port with the token' '^profile_bridge_redis_up 1$' \
  "$(curl --silent "$admin_url/metrics" -H "Authorization: Bearer $(cat "$work/$production/secrets/admin-token")")"
stopped=$(now)
compose stop >/dev/null 2>&1
echo "stop of all services: $(($(now) - stopped)) ms"
expect 'the exit code of the bridge' '^0$' "$(docker inspect --format '{{.State.ExitCode}}' "$bridge")"
compose start >/dev/null 2>&1
until_ready || fail 'not ready within a minute after a restart'
expect 'the profile after a restart of all services' '^\{"username":"ada",' "$(call acme)"
compose_down
