// Package agent composes the long-running tasks: the sampler's loops and the
// HTTP server that answers from what they published.
package agent
