// Package web is the agent's page: drawn on the server, complete without a
// script, and kept current by server-sent events where there is one. Nothing is
// loaded from elsewhere.
package web
