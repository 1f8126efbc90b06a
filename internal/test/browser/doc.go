// Package browser tests the agent's page in a real Chromium: what no test of the
// HTML can see. A module of its own: what it imports is large.
package browser
