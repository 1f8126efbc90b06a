// Package kubelet tells which pod and container a process belongs to, without asking the API server:
// from the names of the files and folders that the kubelet makes for the containers' logs.
//
//	/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log   a symbolic link for each container
//	/var/log/pods/NAMESPACE_POD_UID/CONTAINER            a folder for each
//
// Names are read; nothing there is opened or followed. A pod's own host name and /etc/hosts are
// its own to write, and never used.
package kubelet
