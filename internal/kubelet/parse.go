package kubelet

import "strings"

const (
	suffix = ".log"
	// maxLink is where the kubelet cuts the name of a link, without the suffix (ext4's 255).
	maxLink = 255 - len(suffix)
	idSize  = 64
)

// link is what the name of a container's link says.
type link struct{ namespace, pod, container, id string }

// parseLink reads POD_NAMESPACE_CONTAINER-ID.log. None of the names has an underscore, and an id has
// 64 digits: a name that the kubelet has cut is no such link.
func parseLink(name string) (l link, ok bool) {
	text, ok := strings.CutSuffix(name, suffix)
	parts := strings.Split(text, "_")
	if !ok || len(parts) != 3 {
		return l, false
	}
	at := len(parts[2]) - idSize
	if at < 2 || parts[2][at-1] != '-' {
		return l, false
	}
	l = link{namespace: parts[1], pod: parts[0], container: parts[2][:at-1], id: parts[2][at:]}
	return l, isHex(l.id) && isSubdomain(l.pod) && isLabel(l.namespace) && isLabel(l.container)
}

// linkName is what the kubelet calls the link of a container (logSymlink of its kuberuntime).
func linkName(f folder, container, id string) string {
	name := f.pod + "_" + f.namespace + "_" + container + "-" + id
	return name[:min(len(name), maxLink)] + suffix
}

// folder is what the name of a pod's folder says.
type folder struct{ namespace, pod, uid string }

// parseFolder reads NAMESPACE_POD_UID.
func parseFolder(name string) (f folder, ok bool) {
	parts := strings.Split(name, "_")
	if len(parts) != 3 {
		return f, false
	}
	f = folder{namespace: parts[0], pod: parts[1], uid: parts[2]}
	return f, isLabel(f.namespace) && isSubdomain(f.pod) && f.uid != ""
}

// isLabel is RFC 1123's label, as Kubernetes takes it for namespaces and containers.
func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// isSubdomain is RFC 1123's subdomain, as Kubernetes takes it for pods: labels with dots between,
// 253 characters in all. One label may be longer than 63 there.
func isSubdomain(s string) bool {
	if len(s) > 253 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || part[0] == '-' || part[len(part)-1] == '-' || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return true
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
