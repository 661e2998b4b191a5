FROM node:20-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json openapi.yaml ./
COPY scripts scripts
COPY src src
RUN npm run build && npm prune --omit=dev

FROM node:20-slim
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
RUN install -d -o node -g node -m 0700 /data
USER node
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT ?? 8080}/livez`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# The image holds no Redis: set REDIS_URL (compose.yaml shows how).
CMD ["node", "dist/src/main.js"]
