#!/usr/bin/env bash
# Runs jest with the given arguments on a machine that seems to have Valkey and no Redis: valkey.sh ARGUMENT…
# The valkey-server is the one on the PATH, otherwise the system's package, Debian's backports included: fetched and
# unpacked into a temporary folder. Nothing is installed or started, and no package source is added, so root is not
# needed. Where it cannot be had, this says "skipped: reason" and exits 0.
set -euo pipefail

skip() {
  echo "skipped: $*"
  exit 0
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bin,root,sources,lists/partial,archives/partial}

# An apt that has the machine's sources, and keeps everything it writes in the temporary folder.
apt() {
  local tool=$1
  shift
  "$tool" -q -o Dir::Etc::SourceParts="$work/sources" -o Dir::Etc::SourceList=/dev/null \
    -o Dir::State::Lists="$work/lists" -o Dir::Cache::Archives="$work/archives" \
    -o Dir::Cache::PkgCache= -o Dir::Cache::SrcPkgCache= -o Debug::NoLocking=1 -o APT::Sandbox::User=root "$@"
}

# Unpacks the valkey-server of the system's packages, with the libraries that the machine lacks.
unpack() {
  command -v apt-get >/dev/null || skip 'no valkey-server on the PATH, and no apt-get to fetch one with'
  cp /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} "$work/sources" 2>/dev/null || true
  local ID='' VERSION_CODENAME=''
  . /etc/os-release
  if [ "$ID" = debian ]; then
    # Where this release comes from, its backports are too.
    local keys=/usr/share/keyrings/debian-archive-keyring.gpg targets
    targets=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' 'Component: main')
    if ! grep -q "^$VERSION_CODENAME-backports " <<<"$targets"; then
      sed -n "s|^\($VERSION_CODENAME\) \(.*\)|deb [signed-by=$keys] \2 \1-backports main|p" <<<"$targets" >"$work/sources/backports.list"
    fi
  fi
  # A source that does not answer does not matter if another one has the package.
  apt apt-get update >"$work/log" 2>&1 || true
  apt apt-get install --yes --no-install-recommends --download-only valkey-server >>"$work/log" 2>&1 ||
    skip "apt has no valkey-server here ($(tail -n 1 "$work/log"))"
  for package in "$work"/archives/*.deb; do
    echo "unpacking $(basename "$package")"
    dpkg-deb -x "$package" "$work/root"
  done
}

valkey=$(command -v valkey-server || true)
libraries=''
if [ -z "$valkey" ]; then
  unpack
  valkey=$work/root/usr/bin/valkey-server
  libraries=$(find "$work/root" -name '*.so.*' -printf '%h\n' | sort -u | paste -sd :)
fi

# A PATH without any Redis, which is what makes bridge and tests take Valkey.
IFS=: read -ra folders <<<"$PATH"
for folder in "${folders[@]}"; do
  [ ! -d "$folder" ] || cp -sn "$(realpath "$folder")"/* "$work/bin" 2>/dev/null || true
done
rm -f "$work"/bin/redis-* "$work"/bin/valkey-server
printf '#!/bin/sh\n%sexec "%s" "$@"\n' "${libraries:+export LD_LIBRARY_PATH=$libraries; }" "$valkey" >"$work/bin/valkey-server"
chmod +x "$work/bin/valkey-server"
"$work/bin/valkey-server" --version || skip 'the valkey-server does not run here'

PATH=$work/bin TEST_REDIS=process npm test -- "$@"
