#!/bin/bash
# build.sh FOLDER: the programs of a cluster, from the modules that go.mod pins
# here and, for Helm, in the folder above. Only what is older than its go.mod.
set -euo pipefail
cd "$(dirname "$0")"
out=$1
mkdir -p "$out"
export CGO_ENABLED=0

# build NAME PACKAGE [FLAG…]
build() {
	local name=$1 package=$2
	shift 2
	[ "$out/$name" -nt go.mod ] && return
	echo "building $name"
	go build -o "$out/$name" "$@" "$package"
}

# Helm asks the server for its version, which its own build stamps.
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
stamp=k8s.io/component-base/version
flags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=$major -X $stamp.gitMinor=$minor"

build etcd go.etcd.io/etcd/server/v3
for name in kube-apiserver kube-controller-manager kube-scheduler kubectl kubelet; do
	build "$name" "k8s.io/kubernetes/cmd/$name" -ldflags "$flags"
done
for plugin in main/bridge main/loopback ipam/host-local; do
	build "${plugin#*/}" "github.com/containernetworking/plugins/plugins/$plugin"
done
go build -o "$out/" ./pause ./stub # of this checkout, as are the next two
(cd ../../.. && go build -trimpath -o "$out/tcpdiag" ./cmd/tcpdiag)
(cd ../../../cmd/kubectl-tcpdiag && go build -trimpath -o "$out/kubectl-tcpdiag" .)
for of in "metrics kube-state-metrics k8s.io/kube-state-metrics/v2" "adapter adapter sigs.k8s.io/prometheus-adapter/cmd/adapter"; do
	read -r folder name package <<<"$of"
	(cd "$folder" && build "$name" "$package")
done
cd .. # the chart's tests pin the same Helm
build helm helm.sh/helm/v4/cmd/helm
