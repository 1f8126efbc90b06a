// Command pause holds the namespaces of a pod and does nothing else: the place
// that a registry's image has elsewhere.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}
