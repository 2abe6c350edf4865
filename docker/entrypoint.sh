#!/bin/sh
# As root: hand the working directory to the unprivileged user and go on as that user. Otherwise: just go on.
set -e
if [ "$(id -u)" = 0 ]; then
  [ "$DOCKER_DEBUG" = true ] && echo "entrypoint: owning $(pwd) as node ($(id -u node):$(id -g node))"
  chown -R node:node ./bloom_resources
  exec setpriv --reuid=node --regid=node --init-groups "$@"
fi
exec "$@"
