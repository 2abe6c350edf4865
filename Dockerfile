# Two images of one build: `bloom`, the default, and `bloom-gpl` (docker build --target bloom-gpl) with the FFmpeg
# libraries that HLS streams and cameras need. These are GPL software: see NOTICE.
FROM node:22-bookworm-slim AS manifests
WORKDIR /build
COPY . .
# Packages are installed again only when one of these files changes.
RUN find . -type f ! -name package.json ! -name package-lock.json ! -name .npmrc ! -path ./scripts/setup.mjs -delete \
    && find . -type d -empty -delete

FROM node:22-bookworm-slim AS modules
WORKDIR /build
COPY --from=manifests /build ./
RUN node --input-type=module --eval "import { install } from './scripts/setup.mjs'; install();"

FROM modules AS build
COPY . .
RUN node scripts/setup.mjs && mkdir /compiled \
    && tar -c --exclude=apps/*/dist/modules apps/*/dist apps/*/bin | tar -x -C /compiled

FROM modules AS production-gpl
RUN npm prune --omit=dev --no-audit && rm -rf scripts node_modules/.cache node_modules/@bloom

FROM modules AS production
RUN npm pkg delete optionalDependencies.node-av --workspace @bloom/components \
    && npm prune --omit=dev --no-audit && rm -rf scripts node_modules/.cache node_modules/@bloom

FROM node:22-bookworm-slim AS runtime
ARG JF_GIT_COMMIT=dev
ENV NODE_ENV=production \
    JF_IP=0.0.0.0 \
    JF_METRICS_IP=0.0.0.0 \
    JF_WEBRTC_TURN_LISTEN_IP=0.0.0.0 \
    JF_DIST_MIN_PORT=9000 \
    JF_DIST_MAX_PORT=9000 \
    JF_RESOURCES_BASE_PATH=./bloom_resources \
    JF_GIT_COMMIT=$JF_GIT_COMMIT
LABEL org.opencontainers.image.title="Bloom" \
      org.opencontainers.image.description="Self-hosted real-time media server: rooms, WebRTC, clusters without a database" \
      org.opencontainers.image.source="https://github.com/bloom-media/bloom" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.revision=$JF_GIT_COMMIT \
      org.opencontainers.image.licenses="Apache-2.0"
WORKDIR /app
COPY LICENSE NOTICE ./
COPY deploy/docker/entrypoint.sh /usr/local/bin/bloom-entrypoint
COPY deploy/docker/healthcheck.mjs /usr/local/lib/bloom-healthcheck.mjs
# Open to all, as /tmp is, so that the image works under any user id; at a start as root the entry point owns it.
RUN mkdir -p bloom_resources/file_component_sources && chown -R node:node bloom_resources && chmod 1777 bloom_resources \
    && ln -s /app/apps/bloomctl/bin/bloomctl.js /usr/local/bin/bloomctl
# The node leaves its cluster and ends its rooms in order.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["node", "/usr/local/lib/bloom-healthcheck.mjs"]
ENTRYPOINT ["bloom-entrypoint"]
CMD ["node", "--max-semi-space-size=64", "--single-threaded-gc", "apps/bloom/dist/main.js"]

FROM runtime AS bloom-gpl
LABEL org.opencontainers.image.licenses="Apache-2.0 AND GPL-3.0-or-later"
COPY --from=production-gpl /build ./
COPY --from=build /compiled ./

FROM runtime AS bloom
COPY --from=production /build ./
COPY --from=build /compiled ./
