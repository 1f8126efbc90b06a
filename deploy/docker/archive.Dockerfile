# tcpdiag-archive in an image with nothing else in it, as the agent's (Dockerfile, which explains the
# stages): no shell, no libc. The certificates of public authorities are in the program.
#
#   docker build -f deploy/docker/archive.Dockerfile .    compiles in a golang image
#   make image PROGRAM=tcpdiag-archive                   compiles with the Go that is here

FROM scratch AS base
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="tcpdiag-archive" \
      org.opencontainers.image.description="Takes incidents that tcpdiag recorded to a log pipeline and an object store" \
      org.opencontainers.image.source="https://github.com/tcpdiag/tcpdiag" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY LICENSE /LICENSE
# A number, so that Kubernetes can prove runAsNonRoot. Its group is to be that of --incident-group.
USER 65532:65532
# By the spool's own file: no port is needed.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
    CMD ["/usr/local/bin/tcpdiag-archive", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/tcpdiag-archive"]
CMD ["run"]

# The binary of bin/linux-amd64 or bin/linux-arm64, which `make image PROGRAM=tcpdiag-archive` builds.
FROM base AS prebuilt
ARG TARGETARCH
COPY bin/linux-${TARGETARCH}/tcpdiag-archive /usr/local/bin/tcpdiag-archive

# Go compiles for the target on the machine that builds: no emulation.
FROM --platform=${BUILDPLATFORM} golang:1.26 AS build
ARG TARGETOS=linux
ARG TARGETARCH
ARG VERSION=unknown
ARG REVISION=unknown
# Where the modules come from, if not from where Go gets them: a company's proxy.
ARG GOPROXY
WORKDIR /src
COPY go.mod go.sum ./
COPY cmd cmd
COPY internal internal
WORKDIR /src/cmd/tcpdiag-archive
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -o /tcpdiag-archive \
    -ldflags "-s -w -X github.com/prometheus/common/version.Version=${VERSION} -X github.com/prometheus/common/version.Revision=${REVISION}" \
    .

FROM base AS image
COPY --from=build /tcpdiag-archive /usr/local/bin/tcpdiag-archive
