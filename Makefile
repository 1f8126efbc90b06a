# Each target says what it is for behind ##; `make help` prints them.

SHELL := /bin/bash
.DEFAULT_GOAL := build

GO            ?= go
TOOLS         := $(CURDIR)/.cache/bin
GOLANGCI      := $(TOOLS)/golangci-lint-v2.15.0
GOTESTSUM     := $(TOOLS)/gotestsum-v1.13.0
ACTIONLINT    := github.com/rhysd/actionlint/cmd/actionlint@v1.7.7
HUGO          := $(TOOLS)/hugo-v0.163.3
VERSION       ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION      ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
VERSION_PKG   := github.com/prometheus/common/version
LDFLAGS       := -s -w -X $(VERSION_PKG).Version=$(VERSION) -X $(VERSION_PKG).Revision=$(REVISION)
PROVE         := $(GO) run ./internal/test/proof/prove

# As root nothing is skipped. As anybody else, say each test that is, and why.
VERBOSE       := $(if $(filter 0,$(shell id -u)),,-v)

# $(call gotest,packages,flags) is go test. With RERUN=1, which .ci/run sets, up to eight
# failed tests are run again, at most twice, and the summary names them: a machine that stopped
# for a minute is then no reason to refuse a change, and what really fails fails three times.
gotest         = $(if $(RERUN),$(GOTESTSUM) --format $(if $(VERBOSE),standard-verbose,standard-quiet) --rerun-fails=2 --rerun-fails-max-failures=8 --packages="$(1)" -- $(2),$(GO) test $(2) $(1))

# The tests that start real servers: those of the main job, and the monitoring stack.
SERVER_TESTS  := ./internal/discovery ./internal/evidence/reader ./internal/test/e2e
STACK_TESTS   := ./internal/test/observability
# Tests whose names begin so repeat at length what others show once.
LONG          := ^TestLong
UNIT_TESTS     = $$($(GO) list ./... | grep -v $(foreach t,$(SERVER_TESTS) $(STACK_TESTS),-e '$(t:.%=%)$$'))
LONG_TESTS     = $$(grep -rl --include='*_test.go' '^func TestLong' internal | sed 's|/[^/]*$$||; s|^|./|' | sort -u | grep -v -x $(foreach t,$(SERVER_TESTS) $(STACK_TESTS),-e '$(t)'))
# Modules of their own, since what they import is large.
MODULES       := deploy/kubernetes deploy/docker/check deploy/packages cmd/tcpdiag-archive cmd/kubectl-tcpdiag

.PHONY: build demo help picture clean check test test-rest test-all setup lint prove stale fuzz observability manifests package image release site

##@ To see it

build: ## the program, in bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/tcpdiag ./cmd/tcpdiag

demo: build ## build it and see it work
	./bin/tcpdiag demo

observability: setup ## Tomcat, agent, Prometheus, Alertmanager (and Grafana where it is installed), until Ctrl-C
	@$(GO) build -o .cache/observability ./internal/test/observability/up
	@.cache/observability

help: ## this list
	@awk -F ':.*## ' '/^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

##@ To test a change

# Building the linter takes two minutes: without it this is gofmt.
BASE ?= $(shell git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null || echo HEAD)

# Vet is run once, on everything: go test need not run a part of it again.
check: ## format, lint of what differs from main, vet and every test that needs only Go: a minute
	@if [ -x $(GOLANGCI) ]; then \
	  $(GOLANGCI) fmt --diff ./... && $(GOLANGCI) run --allow-parallel-runners --new-from-rev $(BASE) ./...; \
	else out=$$(gofmt -l cmd internal deploy); echo "gofmt only: the linter is not built (make lint)"; test -z "$$out" || { echo "$$out"; exit 1; }; fi
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) test -vet=off -short -skip "$(LONG)" -timeout 5m ./...

test: setup ## what the README tells a newcomer to run: eight minutes as root
	$(call gotest,$(UNIT_TESTS),-race -vet=off $(VERBOSE) -skip "$(LONG)" -timeout 20m)
	TCPDIAG_TESTS=servers $(call gotest,$(SERVER_TESTS),-race -vet=off -count=1 $(VERBOSE) -skip "$(LONG)" -p 2 -timeout 18m)

test-rest: lint package $(if $(RERUN),$(GOTESTSUM)) ## what `make test` leaves out: at length, the linter, manifests, containers, packages, monitoring
	$(GO) vet ./... && $(GO) mod tidy -diff
	GOOS=darwin GOARCH=arm64 $(GO) build ./...
	GOOS=linux GOARCH=arm64 $(GO) build -trimpath ./...
	$(GO) run $(ACTIONLINT)
	for m in $(MODULES); do (cd $$m && $(GO) vet ./... && $(call gotest,./...,-count=1 -timeout 15m) && $(GOLANGCI) run --allow-parallel-runners ./... && $(GOLANGCI) fmt --diff ./...) || exit 1; done
	$(call gotest,./internal/schedule,-vet=off -count=1 $(VERBOSE) -run '^TestWorkPerScan$$' -timeout 5m)
	$(call gotest,$(LONG_TESTS),-race -vet=off $(VERBOSE) -run "$(LONG)" -timeout 20m)
	TCPDIAG_TESTS=servers $(call gotest,$(SERVER_TESTS),-race -vet=off -count=1 $(VERBOSE) -run "$(LONG)" -p 2 -timeout 18m)
	TCPDIAG_TESTS=servers $(call gotest,$(STACK_TESTS),-race -vet=off -count=1 $(VERBOSE) -p 1 -timeout 18m)

test-all: test test-rest ## all of that, and the quicker proofs
	$(PROVE) mutated assistants browser handshakes kernels-short draws-kept deployments

setup: $(if $(RERUN),$(GOTESTSUM) $(GOLANGCI)) ## the Debian packages that the tests need, where they are missing; the rest are Go modules and Maven's
	$(if $(RERUN),@for m in . $(MODULES); do (cd $$m && $(GO) list -test -deps ./... > /dev/null) || exit 1; done; $(GO) run $(ACTIONLINT) -version)
	@$(PROVE) -needs promtool:prometheus prometheus-alertmanager:prometheus-alertmanager ip:iproute2 ss:iproute2 javac:openjdk-17-jdk-headless mvn:maven gcc:gcc systemd-analyze:systemd rpm:rpm || echo "the tests that need them say so"

lint: $(GOLANGCI) ## the formatter and the linter on all files
	@out=$$($(GOLANGCI) fmt --diff ./...); if [ -n "$$out" ]; then echo "$$out"; echo "run: $(GOLANGCI) fmt ./..."; exit 1; fi
	$(GOLANGCI) run --allow-parallel-runners ./...

##@ To prove what CI does not run

prove: ## a proof by its name: make prove PROOF=deployments [ONLY=cases] [ARGS=more]
	@$(PROVE) $(if $(ONLY),-only '$(ONLY)') $(if $(ARGS),-args '$(ARGS)') $(PROOF)

stale: ## the proofs, and which files have changed since each was run; draws the list of runs in docs/results/README.md
	@$(PROVE) -stale

fuzz: ## each fuzz target for FUZZTIME (10s)
	@for pkg in $$($(GO) list ./internal/...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $${FUZZTIME:-10s} $$pkg || exit 1; \
	  done; \
	done

##@ To deliver it

manifests: ## what is made of others: the static manifests, the chart's schema and table, the dashboards for grafana.com
	cd deploy/kubernetes && $(GO) run .

package: $(GOLANGCI) $(if $(RERUN),$(GOTESTSUM)) ## archives, deb, rpm and checksums in dist/, the same bytes as goreleaser's; as root installed and removed under a real systemd
	cd deploy/packages && $(GO) build -o $(TOOLS)/packages .
	$(TOOLS)/packages
	TCPDIAG_DIST=$(CURDIR)/dist $(call gotest,./deploy/systemd,-race -count=1 $(VERBOSE) -timeout 5m -run '^Test(Deb|RPM|Contents|Archive|Plugin|Krew|ArchiverPackage)$$')

# `docker build` of another target needs a registry, this does not.
ARCH          ?= $(shell $(GO) env GOARCH)
PROGRAM       ?= tcpdiag
IMAGE         ?= tcpdiag/$(PROGRAM):$(VERSION)
DOCKERFILE     = $(if $(filter tcpdiag,$(PROGRAM)),Dockerfile,archive.Dockerfile)
DOCKER        ?= docker

image: ## the agent's image, or with PROGRAM=tcpdiag-archive the archiver's, with the binary that the Go here builds; ARCH=arm64 for the other architecture
	@command -v $(DOCKER) >/dev/null || { echo "$(DOCKER) is not installed (Debian: docker.io)"; exit 1; }
	CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) $(GO) build -C cmd/$(PROGRAM) -trimpath -ldflags '$(LDFLAGS)' -o $(CURDIR)/bin/linux-$(ARCH)/$(PROGRAM) .
	$(DOCKER) build -f deploy/docker/$(DOCKERFILE) --target prebuilt --platform linux/$(ARCH) --build-arg TARGETARCH=$(ARCH) \
	  --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) -t $(IMAGE) .

release: ## a release of the tag that is checked out, published: for the release workflow
	GOBIN=$(TOOLS) $(GO) install github.com/anchore/syft/cmd/syft@v1.52.0
	PATH="$(TOOLS):$$PATH" $(GO) run github.com/goreleaser/goreleaser/v2@v2.11.2 release --clean

picture: $(if $(SITE),site,build) ## the README's moving picture, recorded on a terminal (tmux, half a minute); with SCREENS=folder every screen in every status and size, with ALERTS=folder every alert as a phone shows it, with PAGES=docs/pictures the agent's page in every status, with SITE=docs/pictures this documentation
	@$(PROVE) -needs $(if $(SITE)$(PAGES)$(ALERTS),chromium:chromium,tmux:tmux)
	internal/test/picture/$(if $(SITE),site.sh '$(SITE)',$(if $(PAGES),pages.sh '$(PAGES)',$(if $(ALERTS),alerts.sh '$(ALERTS)',$(if $(SCREENS),screens.sh '$(SCREENS)',record.sh))))

site: $(HUGO) ## the documentation as a site in dist/site, its links checked
	$(HUGO) --source deploy/site --destination $(CURDIR)/dist/site --cleanDestinationDir --noBuildLock --quiet --panicOnWarning
	$(GO) test -count=1 ./internal/test/site -built $(CURDIR)/dist/site

clean: ## what was built
	rm -rf bin .cache dist

$(GOLANGCI):
	@echo "building golangci-lint (once)"
	@mkdir -p $(TOOLS)
	@GOBIN=$(TOOLS)/tmp $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
	@mv $(TOOLS)/tmp/golangci-lint $@

$(HUGO):
	@echo "building hugo (once)"
	@CGO_ENABLED=0 GOBIN=$(TOOLS)/tmp $(GO) install github.com/gohugoio/hugo@v0.163.3
	@mv $(TOOLS)/tmp/hugo $@

$(GOTESTSUM):
	@GOBIN=$(TOOLS)/tmp $(GO) install gotest.tools/gotestsum@v1.13.0
	@mv $(TOOLS)/tmp/gotestsum $@

# A name that is no target may be a proof's.
.DEFAULT:
	@echo "no target is called $@: make help lists them; a proof is run by make prove PROOF=$@"; exit 1
