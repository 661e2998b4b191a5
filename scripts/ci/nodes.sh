#!/usr/bin/env bash
# Runs the fast part of the suite on other versions of Node.js: nodes.sh VERSION…
# The fast part is what depends on Node.js most: the public port with its server, bodies, uploads and signals, and the
# code without I/O. It needs no browser, database, cluster, bucket or proxy.
set -euo pipefail
cd "$(dirname "$0")/../.."

for version in "$@"; do
  node=$(readlink -f "$(npx -y -p "node@$version" which node)")
  echo "--- $("$node" --version)"
  PATH=$(dirname "$node"):$PATH NODE_OPTIONS=--experimental-vm-modules "$node" node_modules/jest/bin/jest.js \
    test/lib test/domain test/contract test/config test/api test/media test/main --testPathIgnorePatterns test/media/store
done
