FROM node:22-bookworm-slim AS build
WORKDIR /build
COPY . .
RUN node scripts/setup.mjs && npm prune --omit=dev --no-audit

FROM node:22-bookworm-slim
ARG JF_GIT_COMMIT=dev
ENV NODE_ENV=production \
    JF_IP=0.0.0.0 \
    JF_METRICS_IP=0.0.0.0 \
    JF_DIST_MIN_PORT=9000 \
    JF_DIST_MAX_PORT=9000 \
    JF_RESOURCES_BASE_PATH=./bloom_resources \
    JF_GIT_COMMIT=$JF_GIT_COMMIT
WORKDIR /app
COPY --from=build /build/package.json ./
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/packages ./packages
COPY --from=build /build/apps ./apps
COPY docker/entrypoint.sh /usr/local/bin/bloom-entrypoint
COPY docker/healthcheck.mjs /usr/local/lib/bloom-healthcheck.mjs
RUN mkdir -p bloom_resources/file_component_sources && chown -R node:node /app/bloom_resources \
    && ln -s /app/apps/bloomctl/bin/bloomctl.js /usr/local/bin/bloomctl
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["node", "/usr/local/lib/bloom-healthcheck.mjs"]
ENTRYPOINT ["bloom-entrypoint"]
CMD ["node", "--max-semi-space-size=64", "--single-threaded-gc", "--enable-source-maps", "apps/bloom/dist/main.js"]
