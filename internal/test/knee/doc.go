// Package knee holds the knee that tcpdiag run states of one run of a load test against the one
// that a bisection finds with many runs of the same server, and applies the settings that it
// proposes. clients is the load: it keeps an account of its own.
package knee
