#!/usr/bin/env bash
# Runs jest with the given arguments on testcontainers: containers.sh ARGUMENT…
set -euo pipefail
. "$(dirname "$0")/docker.sh"

copy_programs "$work/root" redis-server redis-cli sh
import_image "$work/root" local/redis:7 --change 'CMD ["redis-server"]'
timeout 60 docker run --rm --network none local/redis:7 redis-server --version ||
  skip 'the Docker engine does not run containers here'

TEST_REDIS=testcontainers REDIS_TEST_IMAGE=local/redis:7 TESTCONTAINERS_RYUK_DISABLED=true \
  TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1 npm test -- "$@"
