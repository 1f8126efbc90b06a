// Package systemd holds the units and, in its tests, runs them: verified and
// scored by systemd-analyze, then started by a real systemd in namespaces.
package systemd
