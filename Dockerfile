# The command iwarp, and nothing else:
#
#   docker build --build-arg VERSION=v0.1.0 --build-arg COMMIT=$(git rev-parse HEAD) -t iwarp .
#   docker run --rm iwarp info
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY . .
ARG TARGETOS TARGETARCH VERSION COMMIT
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X main.version=$VERSION -X main.commit=$COMMIT" -o /out/iwarp ./cmd/iwarp

FROM scratch
COPY --from=build /src/LICENSE /out/iwarp /
# It needs no rights: the ports are above 1023.
USER 65532:65532
EXPOSE 7174 7471
ENTRYPOINT ["/iwarp"]
CMD ["help"]
