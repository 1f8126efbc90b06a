# make demo      build it and see it work (needs Go only)
# make check      format, lint, vet and every test that needs only Go: a minute
# make test       set up what the tests need, then prove the main job: eight minutes
# make test-long  the tests that repeat at length what others show once
# make test-all   make test, make test-long, packages, manifests, containers, monitoring
# make lab, make bench, make observability: see below

SHELL := /bin/bash
.DEFAULT_GOAL := build

GO            ?= go
TOOLS         := $(CURDIR)/.cache/bin
GOLANGCI      := $(TOOLS)/golangci-lint-v2.15.0
VERSION       ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION      ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
VERSION_PKG   := github.com/prometheus/common/version
LDFLAGS       := -s -w -X $(VERSION_PKG).Version=$(VERSION) -X $(VERSION_PKG).Revision=$(REVISION)

# As root nothing is skipped. As anybody else, say each test that is, and why.
VERBOSE       := $(if $(filter 0,$(shell id -u)),,-v)

# $(call gotest,packages,flags) is go test. With RERUN=1, which .ci/run sets, up to three
# failed tests are run a second time, and the summary names them: a machine that stopped
# for a minute is then no reason to refuse a change, and what really fails fails twice.
GOTESTSUM     := $(TOOLS)/gotestsum-v1.13.0
gotest         = $(if $(RERUN),$(GOTESTSUM) --format $(if $(VERBOSE),standard-verbose,standard-quiet) --rerun-fails=1 --rerun-fails-max-failures=3 --packages="$(1)" -- $(2),$(GO) test $(2) $(1))

# The tests that start real servers: those of the main job, and the monitoring stack.
SERVER_TESTS  := ./internal/discovery ./internal/evidence/reader ./internal/test/e2e
STACK_TESTS   := ./internal/test/observability

.PHONY: attacks dumps browser mutated deployments kills build demo check test test-long test-rest test-all setup fmt lint lint-changed vet cross unit manifests manifests-test containers-test cluster-test package man release workflows-test servers stack fuzz lab bench bench-tap handshakes soak observability image docker-test kernels kernels-short clean scale

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/tcpdiag ./cmd/tcpdiag

demo: build
	./bin/tcpdiag demo

# No root, no network, no server: as anybody, in the background, on a busy machine.
check: lint-changed vet
	$(GO) test -short -skip "$(LONG)" -timeout 5m ./...

# What the README tells a newcomer to run.
test: setup unit servers

# What `make test` leaves out, for .ci/run.
test-rest: test-long vet fmt lint cross workflows-test manifests-test containers-test package stack

test-all: test test-rest mutated browser handshakes kernels-short deployments

# Debian packages (only those that are missing, only as root), and the real Tomcat,
# which Maven fetches. Everything else is a Go module.
setup:
	@internal/test/lab/setup.sh

$(GOLANGCI):
	@echo "building golangci-lint (once)"
	@mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS)/tmp $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
	@mv $(TOOLS)/tmp/golangci-lint $@

$(GOTESTSUM):
	@GOBIN=$(TOOLS)/tmp $(GO) install gotest.tools/gotestsum@v1.13.0
	@mv $(TOOLS)/tmp/gotestsum $@

fmt: $(GOLANGCI)
	@out=$$($(GOLANGCI) fmt --diff ./...); if [ -n "$$out" ]; then echo "$$out"; echo "run: $(GOLANGCI) fmt ./..."; exit 1; fi

lint: $(GOLANGCI)
	$(GOLANGCI) run --allow-parallel-runners ./...

# The formatter and the linter on what differs from the main branch, where the
# linter has been built (`make fmt`): building it takes two minutes.
BASE ?= $(shell git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null || echo HEAD)

lint-changed:
	@if [ -x $(GOLANGCI) ]; then \
	  $(GOLANGCI) fmt --diff ./... && $(GOLANGCI) run --allow-parallel-runners --new-from-rev $(BASE) ./...; \
	else out=$$(gofmt -l cmd internal deploy); echo "gofmt only: the linter is not built (make fmt)"; test -z "$$out" || { echo "$$out"; exit 1; }; fi

vet:
	$(GO) vet ./...
	$(GO) mod tidy -diff

# It builds where it does not run, and for the other architecture.
cross:
	GOOS=darwin GOARCH=arm64 $(GO) build ./...
	GOOS=linux GOARCH=arm64 $(GO) build -trimpath ./...

# Tests whose names begin so repeat at length what others show once.
LONG          := ^TestLong
UNIT_TESTS     = $$($(GO) list ./... | grep -v $(foreach t,$(SERVER_TESTS) $(STACK_TESTS),-e '$(t:.%=%)$$'))
LONG_TESTS     = $$(grep -rl --include='*_test.go' '^func TestLong' internal | sed 's|/[^/]*$$||; s|^|./|' | sort -u | grep -v -x $(foreach t,$(SERVER_TESTS),-e '$(t)'))

unit servers stack test-long: $(if $(RERUN),$(GOTESTSUM))

# Unit tests, and as root those in network namespaces, with the race detector. `make vet`
# is in `make check`.
unit:
	$(call gotest,$(UNIT_TESTS),-race -vet=off $(VERBOSE) -skip "$(LONG)" -timeout 20m)

# Hostile processes and neighbours, one after the other, against the built agent as
# root, as the DaemonSet and as a sidecar: what it said, its memory, the longest time
# without a sample, the oldest snapshot. As root, a quarter of an hour; `unit` tries
# those that are cheap.
attacks:
	TCPDIAG_TESTS=full $(GO) test -count=1 -v -timeout 60m ./internal/test/attacks

# A thousand requests for thread dumps to JVMs that a signal would end or that cannot
# answer, and how long a JVM of 1,000 threads stands still for one. Some minutes.
dumps:
	TCPDIAG_TESTS=full $(GO) test -count=1 -v -timeout 20m -run 'Thousand|Standstill' ./internal/threaddump

# The static manifests of the node agent, rendered from the Helm chart.
manifests:
	cd deploy/kubernetes && $(GO) run .

# The chart, the kustomizations and the static manifests, read as strictly as
# the servers that take them do. A module of its own: what it imports is large.
manifests-test: $(GOLANGCI)
	cd deploy/kubernetes && $(GO) test -count=1 -timeout 5m .
	cd deploy/kubernetes && $(GOLANGCI) run --allow-parallel-runners . && $(GOLANGCI) fmt --diff .

# The Dockerfiles and the compose file, read by BuildKit's parser and Compose's
# loader; no engine is needed. A module of its own: what it imports is large.
containers-test: $(GOLANGCI)
	cd deploy/docker/check && $(GO) vet . && $(GO) test -count=1 -timeout 5m .
	cd deploy/docker/check && $(GOLANGCI) run --allow-parallel-runners . && $(GOLANGCI) fmt --diff .

# The same manifests against the API server's own validation: Kubernetes is
# compiled for it, which takes a minute or two.
manifests-validate:
	set -o pipefail; cd deploy/kubernetes && $(GO) run . -all | (cd validate && $(GO) run .)

# The READMEs' install commands for Kubernetes, as they are written there, against
# the real control plane, and as root with a kubelet that starts the pods: its
# build takes six minutes the first time, the tests three and a half. See
# deploy/kubernetes/README.md.
CLUSTER       := $(CURDIR)/.cache/cluster

cluster-test: $(GOLANGCI)
	deploy/kubernetes/cluster/build.sh $(CLUSTER)
	@test $$(id -u) != 0 || deploy/kubernetes/cluster/pods.sh $(CLUSTER)
	cd deploy/kubernetes/cluster && CGO_ENABLED=0 TCPDIAG_CLUSTER=$(CLUSTER) $(GO) test -count=1 -v -timeout 15m ./...
	cd deploy/kubernetes/cluster && $(GOLANGCI) run --allow-parallel-runners ./... && $(GOLANGCI) fmt --diff ./...

# Archives, deb, rpm and checksums of this checkout in dist/, the same bytes as
# goreleaser's; then installed, upgraded and removed under a real systemd. A
# module of its own: what it imports is large.
package: $(GOLANGCI)
	cd deploy/packages && $(GO) build -o $(TOOLS)/packages .
	cd deploy/packages && $(GOLANGCI) run --allow-parallel-runners . && $(GOLANGCI) fmt --diff .
	$(TOOLS)/packages
	TCPDIAG_DIST=$(CURDIR)/dist $(GO) test -race -count=1 $(VERBOSE) -timeout 5m -run '^Test(Deb|RPM|Contents|Archive)$$' ./deploy/systemd

# A release of the tag that is checked out, published: for the release workflow.
release:
	GOBIN=$(TOOLS) $(GO) install github.com/anchore/syft/cmd/syft@v1.52.0
	PATH="$(TOOLS):$$PATH" $(GO) run github.com/goreleaser/goreleaser/v2@v2.11.2 release --clean

# The workflows of the hosting platform, read by actionlint.
workflows-test:
	$(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.7

# Manual pages and completions, in .cache/package.
man:
	deploy/packages/generate.sh

# Against real servers, two packages at a time: they wait for JVMs more than they compute.
servers:
	TCPDIAG_TESTS=servers $(call gotest,$(SERVER_TESTS),-race -vet=off -count=1 $(VERBOSE) -skip "$(LONG)" -p 2 -timeout 18m)

# Every version of the servers, every viewer, floods, hours of incidents.
test-long:
	$(call gotest,$(LONG_TESTS),-race $(VERBOSE) -run "$(LONG)" -timeout 20m)
	TCPDIAG_TESTS=servers $(call gotest,$(SERVER_TESTS),-race -count=1 $(VERBOSE) -run "$(LONG)" -p 1 -timeout 18m)

# Prometheus and Alertmanager with the delivered rules beside a real Tomcat.
stack:
	TCPDIAG_TESTS=servers $(call gotest,$(STACK_TESTS),-race -count=1 $(VERBOSE) -p 1 -timeout 18m)

# The page in a real Chromium: updates in place, keyboard, contrast (axe-core), its
# policy, its budgets. Without a browser, or npm for axe-core, it says what it skips.
# A module of its own: what it imports is large. BROWSER='^TestFirstPaint$$' for some.
AXE           := .cache/browser/node_modules/axe-core/axe.min.js

browser: $(GOLANGCI)
	@if [ ! -e $(AXE) ] && command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --prefix .cache/browser axe-core@4.10.3 >/dev/null || true; fi
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null || true; fi
	cd internal/test/browser && $(GO) vet . && $(GO) test -count=1 -v -timeout 20m $(if $(BROWSER),-run '$(BROWSER)') .
	cd internal/test/browser && $(GOLANGCI) run --allow-parallel-runners . && $(GOLANGCI) fmt --diff .

# A hundred real incidents, the agent and some of the servers killed at a random
# moment: what is left of each recording. Root, six minutes; `unit` has four of them.
kills:
	TCPDIAG_TESTS=full $(GO) test -count=1 -v -timeout 30m -run '^TestLongKilledAtAnyMoment$$' ./internal/cli

# Large and busy hosts, built on the real kernel in namespaces of their own: how old
# what the agent says is, and what it takes. Needs root; ten minutes at most, and
# 5 GB of memory for the million sockets (SCALE=-ends=100000 for fewer).
scale:
	$(GO) run ./internal/test/scale $(SCALE)

# Every parser of strangers' bytes on 10,000 mutations of its fuzz target's corpus, the
# same each time, each within the limits of the process that parses.
mutated:
	TCPDIAG_TESTS=full $(GO) test -count=1 -timeout 20m -run '^Fuzz' ./internal/...

# Each fuzz target for a while.
fuzz:
	@for pkg in $$($(GO) list ./internal/...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $${FUZZTIME:-10s} $$pkg || exit 1; \
	  done; \
	done

# The published experiments on real Tomcats, with k6 and Locust: a table in
# internal/test/lab/RESULTS.md. Takes a quarter of an hour, needs root; LAB='^A9' runs
# the scenarios of that name again and replaces their rows.
lab: setup
	$(GO) run ./internal/test/lab $(if $(LAB),-update -run '$(LAB)')

# Deployments that nobody here built for (limits in code, proxies in front, other
# servers), held against Tomcat's MBeans: a table in docs/deployments.md. Needs root,
# Java and Maven, a quarter of an hour; CASES='nginx|h2c' runs those and replaces
# their rows. nginx, haproxy and nftables are used where they are installed.
deployments:
	TCPDIAG_TESTS=full $(GO) test -count=1 -v -timeout 90m -run 'Deployment/$(CASES)' ./internal/test/deployments

# Each advice followed on the real server: the same load before and after, a table in
# docs/advice.md. Needs root and what deployments needs, cgroups of version 1, ten
# minutes; ADVICE='keep_alive|jvm' follows those and replaces their rows.
.PHONY: advice
advice:
	TCPDIAG_TESTS=full $(GO) test -count=1 -v -timeout 90m -run 'Advice/$(ADVICE)' ./internal/test/deployments

# Overloads drawn from a seed, whose causes their arithmetic gives: a table. Needs
# what deployments needs, ten seconds a draw; AFTER=100 continues a table.
.PHONY: overloads
overloads:
	TCPDIAG_TESTS=full $(GO) test -count=1 -v -timeout 90m -run Overloads ./internal/test/deployments -draws $(or $(OVERLOADS),50) -seed $(or $(SEED),1)

# A healthy load of every kind of client for HEALTHY (1h): whatever tcpdiag says of it
# but ok is a false alarm.
.PHONY: healthy
healthy:
	TCPDIAG_TESTS=full $(GO) test -count=1 -v -timeout 90m -run Healthy ./internal/test/deployments -lasts $(or $(HEALTHY),1h)

# What the threads of a real server wait for (PostgreSQL behind HikariCP, Redis, another
# Tomcat, backends of its own), held against the backends' own numbers: a table in
# docs/waits.md. Needs root, Java, Maven, Debian's postgresql and redis-server, ten
# minutes; WAITS='^G1' runs those cases alone and leaves the table.
.PHONY: waits
waits:
	TCPDIAG_TESTS=full $(GO) test -count=1 -v -timeout 90m -run 'Waits/$(WAITS)' ./internal/test/waits

# Every budget against the bare system calls, on 190,000 sockets: a table in
# internal/test/bench/RESULTS.md. Needs root.
bench:
	$(GO) run ./internal/test/bench

# What following handshakes costs a Tomcat at its fastest, and an agent: a table in
# internal/test/bench/TAP.md. Needs root, twenty minutes.
bench-tap:
	$(GO) run ./internal/test/bench -tap 800 -deadline 40m

# Clients that count themselves, as many as the scenarios ask for: a million on the
# loopback, a million by a veth, and a flood of a million spoofed addresses. Needs
# root, some minutes; `unit` tries fewer.
handshakes:
	TCPDIAG_TESTS=full $(GO) test -count=1 -v -timeout 60m -run '^Test(ManyClients|LongSpoofedFlood|Netem)$$' ./internal/handshake

# Half an hour at a thousand samples a second: nothing grows.
soak:
	TCPDIAG_TESTS=full $(GO) test -count=1 -timeout 45m -v -run TestSoak ./internal/observer

# Tomcat, agent, Prometheus, Alertmanager (and Grafana where it is installed),
# until Ctrl-C.
observability: setup
	@$(GO) build -o .cache/observability ./internal/test/observability/up
	@.cache/observability

# The image, with the binary that the Go here builds; ARCH=arm64 for the other
# architecture. `docker build` of another target needs a registry, this does not.
ARCH          ?= $(shell $(GO) env GOARCH)
IMAGE         ?= tcpdiag/tcpdiag:$(VERSION)
DOCKER        ?= docker

image:
	CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/linux-$(ARCH)/tcpdiag ./cmd/tcpdiag
	$(DOCKER) build -f deploy/docker/Dockerfile --target prebuilt --platform linux/$(ARCH) --build-arg TARGETARCH=$(ARCH) \
	  --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) -t $(IMAGE) .

# Real containers, on a Docker engine that the test starts for itself: three
# minutes, root. See deploy/docker/README.md.
docker-test:
	TCPDIAG_TESTS=full $(GO) test -count=1 -v -timeout 20m ./deploy/docker

# Packaged kernels from 5.10 to the newest, an arm64 one and a slow machine, all
# emulated: the tests that depend on the kernel, and docs/kernels.md of what was
# seen. KERNELS='^6.12' boots those of that name and replaces their columns, BOOTS=java
# only that boot of theirs, AT_ONCE=2 two guests at a time; CLIENTS=300000 has so many
# clients come across each network that delays and loses packets, and nothing else. 300 MB of packages the
# first time. A guest takes one processor for as long as the table says, and longer
# beside others: its clock waits for it. The short form boots the oldest and the
# newest kernel, with what they have and do.
kernels:
	internal/test/kernels/setup.sh
	$(GO) run ./internal/test/kernels $(if $(KERNELS),-only '$(KERNELS)') $(if $(BOOTS),-boots '$(BOOTS)') $(if $(CLIENTS),-clients $(CLIENTS)) $(if $(AT_ONCE),-at-once $(AT_ONCE))

kernels-short:
	internal/test/kernels/setup.sh
	$(GO) run ./internal/test/kernels -short $(if $(AT_ONCE),-at-once $(AT_ONCE))

clean:
	rm -rf bin .cache dist
