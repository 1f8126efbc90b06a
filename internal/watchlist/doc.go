// Package watchlist says which listeners there are, which of them are watched, and why:
// those on the ports and of the processes that were asked for, or else Tomcat's. A Lister
// opens the network namespaces that are wanted, lists the listeners of each, finds their
// owners and what stands behind them, and makes an immutable list of it.
//
// Read lister.go first. What selects a listener (selection, claim, expect, share) is pure.
package watchlist
