#!/bin/sh
# As root: gives the user `node` the folders that it writes to and continues as that user. As any other user: continues.
resources=${JF_RESOURCES_BASE_PATH:-${FJ_RESOURCES_BASE_PATH:-./bloom_resources}}

warn() {
  if [ "${JF_STRUCTURED_LOGGING:-$FJ_STRUCTURED_LOGGING}" = true ]; then
    text=$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')
    printf '{"time":"%s","severity":"warning","message":"%s","metadata":{}}\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$text"
  else
    echo "entrypoint: $1"
  fi
}

# Owns a tree whose top does not belong to the user yet. Children go first: after an interruption the next start goes on.
own() {
  [ "$(stat -c %U "$1")" = node ] && return
  [ "$DOCKER_DEBUG" = true ] && echo "entrypoint: owning $1 as node ($(id -u node):$(id -g node))"
  find "$1" -xdev -depth ! -user node -exec chown -h node:node {} + 2>/dev/null ||
    warn "$1 keeps its owner, because it cannot be changed; the node can use it as its permissions allow"
}

if [ "$(id -u)" != 0 ]; then exec "$@"; fi

mkdir -p "$resources" 2>/dev/null
for folder in "$resources"/*/ "$resources"; do
  folder=${folder%/}
  if [ -d "$folder" ] && [ ! -L "$folder" ]; then own "$folder"; fi
done
if setpriv --reuid=node --regid=node --init-groups true 2>/dev/null; then
  exec setpriv --reuid=node --regid=node --init-groups "$@"
fi
warn "continuing as root, because this container may not change its user"
exec "$@"
