#!/usr/bin/env bash
# Runs the fast part of the suite on every supported version of Node.js: nodes.sh VERSION…
set -euo pipefail
cd "$(dirname "$0")/../.."

for version in "$@"; do
  node=$(readlink -f "$(npx -y -p "node@$version" which node)")
  echo "--- $("$node" --version)"
  PATH=$(dirname "$node"):$PATH NODE_OPTIONS=--experimental-vm-modules "$node" node_modules/jest/bin/jest.js --coverage=false \
    test/lib test/domain test/contract test/config test/deploy test/api test/media test/main test/cli
done
