// Package clients follows what becomes of the clients: it keeps a tap.Tap in each
// network namespace that the snapshots name, gives every client to the listener it meant,
// and adds the numbers to a snapshot in the making, before anybody has judged it.
package clients
