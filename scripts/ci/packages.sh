#!/usr/bin/env bash
# Installs, by apt, the packages whose programs are missing: packages.sh PROGRAM=PACKAGE…
set -euo pipefail

path=$PATH:/usr/sbin:$(printf '%s:' /usr/lib/postgresql/*/bin)
missing=()
for pair in "$@"; do
  [ -n "$(PATH=$path command -v "${pair%%=*}")" ] || missing+=("${pair#*=}")
done
if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
echo "installed: ${missing[*]:-nothing, all there}"
