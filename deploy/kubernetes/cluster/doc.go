// Package cluster runs the install commands of the READMEs as they are written
// there, against a control plane of the real programs: etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler, with kubectl and Helm in front.
// As root a kubelet and containerd start the pods, too, in namespaces.
// A module of its own: what it builds is large.
package cluster
