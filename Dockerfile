FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=optional
COPY tsconfig.json tsconfig.build.json ./
COPY apps apps
COPY libs libs
COPY examples examples
COPY migrations migrations
RUN node node_modules/typescript/bin/tsc -p tsconfig.build.json && npm prune --omit=dev --omit=optional

FROM node:24-slim
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
RUN install --directory --owner=node /data
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY migrations migrations
COPY examples examples
USER node
EXPOSE 3000
CMD ["node", "dist/apps/api/src/main.js"]
