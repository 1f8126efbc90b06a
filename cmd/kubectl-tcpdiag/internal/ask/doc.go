// Package ask finds who can answer for a pod, and asks: a sidecar in it, the agent of its
// node, else an ephemeral container that is added to it.
package ask
