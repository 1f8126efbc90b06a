package model

// Pod is a pod of Kubernetes and one of its containers. Each name has the characters that
// Kubernetes allows there, and no others.
type Pod struct {
	Namespace, Name string
	Container       string // "" where it is not known
	UID             string // "" where it is not known
}

// String is "NAMESPACE/NAME".
func (p *Pod) String() string { return p.Namespace + "/" + p.Name }
