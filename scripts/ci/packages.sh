#!/usr/bin/env bash
# Installs, by apt, the packages whose programs are missing: packages.sh PROGRAM=PACKAGE[|PACKAGE]…
# Of several packages, the first that this system has.
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
  for i in "${!missing[@]}"; do
    for package in ${missing[i]//|/ }; do
      if apt-cache show "$package" >/dev/null 2>&1; then break; fi
    done
    missing[i]=$package
  done
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
echo "installed: ${missing[*]:-nothing, all there}"
