#!/usr/bin/env bash
# Checks the files in scripts/deploy with the programs that read them, and runs the proxies in front of bridges.
set -euo pipefail
cd "$(dirname "$0")/../deploy"
PATH=$PATH:/usr/sbin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A certificate in place of the real one.
openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=profiles.example.com \
  -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
cat "$work/cert.pem" "$work/key.pem" >"$work/both.pem"

sed "s|/etc/haproxy/profiles.example.com.pem|$work/both.pem|" haproxy.cfg >"$work/haproxy.cfg"
haproxy -c -f "$work/haproxy.cfg"

sed -e "s|/etc/ssl/profiles.example.com/fullchain.pem|$work/cert.pem|" \
  -e "s|/etc/ssl/profiles.example.com/privkey.pem|$work/key.pem|" nginx.conf >"$work/site.conf"
printf 'pid %s/nginx.pid; error_log stderr; events {} http { access_log off; include %s/site.conf; }' "$work" "$work" >"$work/nginx.conf"
nginx -t -q -c "$work/nginx.conf"
echo 'nginx.conf: ok'

# The paths of the installation do not exist here.
sed 's|^ExecStart=[^ ]*|ExecStart=/bin/true|' profile-bridge.service >"$work/profile-bridge.service"
complaints=$(systemd-analyze verify "$work/profile-bridge.service" 2>&1 || true)
[ -z "$complaints" ] || { echo "$complaints" >&2; exit 1; }
echo 'profile-bridge.service: ok'

promtool check rules prometheus/rules.yaml
promtool test rules prometheus/rules.test.yaml

for file in compose.yaml ../../compose.yaml; do
  PUBLIC_BASE_URL=https://profiles.example.com docker-compose --file "$file" config --quiet
  echo "$file: ok"
done

cd ../..
npm test -- test/deploy
