# Any image of Node 24 with npm will do, for example one from your own registry.
ARG NODE_IMAGE=node:24-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json openapi.yaml ./
COPY scripts scripts
COPY src src
RUN npm run build && npm prune --omit=dev

FROM ${NODE_IMAGE}
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
WORKDIR /app
COPY --from=build /app/package.json /app/package-lock.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
# The pages that messages and help texts name, and the mappings that those name.
COPY scripts/deploy/CONFIGURATION.md scripts/deploy/
COPY src/cutover/README.md src/cutover/
COPY src/migration/README.md src/migration/
COPY src/migration/sources/examples src/migration/sources/examples
COPY src/redis/README.md src/redis/
# Writable for the group root: OpenShift runs images as a random user of it.
RUN mkdir -m 0770 /data && ln -s /app/dist/scripts/profile-bridge.js /usr/local/bin/profile-bridge
USER 1000:0
VOLUME /data
EXPOSE 8080 8081
HEALTHCHECK --interval=10s --timeout=3s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 8080}/livez`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# The image does not contain Redis: set REDIS_URL (see compose.yaml).
ENTRYPOINT ["profile-bridge"]
CMD ["serve"]
