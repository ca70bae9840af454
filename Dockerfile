# The bundle on an image that holds Node and nothing else. Why it is made as it is: docs/decisions/0008-image.md.

# Any image with npm; nothing of it is passed on.
ARG BUILD_IMAGE=docker.io/library/node:26-trixie-slim
ARG BUILD_DIGEST=
# Any image with `node` (24 or later) in /nodejs/bin, /usr/local/bin or /usr/bin. Releases are built with a digest,
# of the index of all architectures.
ARG BASE_IMAGE=gcr.io/distroless/nodejs26-debian13
ARG BASE_DIGEST=

# The bundle is the same for every architecture: it is built once, on that of the builder.
FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE}${BUILD_DIGEST:+@${BUILD_DIGEST}} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY scripts scripts
COPY src src
COPY docs/runbooks docs/runbooks
ARG REVISION
# Source maps are as large as the program several times over, and are in the npm package.
RUN npm run build && rm dist/*.map

FROM ${BASE_IMAGE}${BASE_DIGEST:+@${BASE_DIGEST}}
ARG VERSION
ARG REVISION
ARG CREATED
ARG BASE_IMAGE
ARG BASE_DIGEST
# Off for all who do not set NODE_OPTIONS themselves, as pods of the mode redirect do. Node 24 has no such interface, and does not
# know the switch: with such a base this argument is empty.
ARG NODE_SWITCHES=--no-experimental-ffi
LABEL org.opencontainers.image.title="token-sidecar" \
      org.opencontainers.image.description="A Kubernetes sidecar that gives a pod OAuth 2.0 access tokens" \
      org.opencontainers.image.source="https://github.com/token-sidecar/token-sidecar" \
      org.opencontainers.image.documentation="https://github.com/token-sidecar/token-sidecar#readme" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}" \
      org.opencontainers.image.base.digest="${BASE_DIGEST}"
ENV PATH=/nodejs/bin:/usr/local/bin:/usr/bin:/bin \
    NODE_ENV=production \
    NODE_OPTIONS=${NODE_SWITCHES} \
    MALLOC_ARENA_MAX=1 \
    MALLOC_MMAP_THRESHOLD_=65536 \
    MALLOC_TRIM_THRESHOLD_=131072
WORKDIR /app
COPY LICENSE package.json ./
COPY --from=build /build/dist dist
# A number, which is what runAsNonRoot can judge.
USER 65532:65532
EXPOSE 15080 15081 15090 15091 15443
ENTRYPOINT ["node", "--disable-sigusr1", "--max-semi-space-size=1", "--disable-proto=delete", "/app/dist/token-sidecar.js"]
CMD ["proxy"]
