// Package check reads the Dockerfiles with BuildKit's own parser and the
// compose file with Compose's own loader, without an engine. A module of its
// own: what it imports is large.
package check
