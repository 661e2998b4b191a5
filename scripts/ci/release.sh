#!/usr/bin/env bash
# The checks that take longer than a change should wait for; run them before a release, after .ci/run.
set -euo pipefail
cd "$(dirname "$0")/../.."

step() {
  printf '\n=== %s (%ss)\n' "$*" "$SECONDS"
}

step 'system packages'
bash scripts/ci/packages.sh dockerd=docker.io 'docker=docker-cli|docker.io' iptables=iptables \
  docker-compose=docker-compose nginx=nginx-light haproxy=haproxy promtool=prometheus systemd-analyze=systemd

step 'bill of materials and licences of the runtime dependencies'
node scripts/ci/sbom.mjs

step 'deployment examples'
bash scripts/ci/deploy.sh

step 'container image'
bash scripts/ci/image.sh

step 'the fast part on other versions of Node.js'
bash scripts/ci/nodes.sh 22 24 26

step 'tests that use the shared Redis, on testcontainers'
bash scripts/ci/containers.sh \
  test/api test/redis --testPathIgnorePatterns='test/redis/connection/(connect|embedded|open)'

step 'on a Redis Cluster of three masters, each with a replica'
# Everything that uses a store, except what starts its own clusters, reads databases, or needs a browser.
TEST_REDIS=cluster npm test -- \
  test/api test/redis test/deprecation test/admin-port test/main test/cli test/media test/migration \
  --testPathIgnorePatterns='test/redis/connection/(connect|embedded|open)' browser \
  'test/migration/(sources|records|analysis|examples|cluster)'

step 'on Valkey: standalone, in a cluster, and embedded'
bash scripts/ci/valkey.sh test/api test/redis test/main test/cluster
