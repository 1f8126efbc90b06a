// Command stub is what a pod of many runs in place of a server: it is called java, as a Tomcat is,
// listens on a port, and does no more. With CLAIMS it says of itself that it is another, in every
// way that is a pod's own to write.
package main

import (
	"cmp"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if of := os.Getenv("CLAIMS"); of != "" {
		claim(of)
	}
	l, err := net.Listen("tcp", ":"+cmp.Or(os.Getenv("LISTEN"), "8080"))
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}

func claim(of string) {
	if err := syscall.Sethostname([]byte(of)); err != nil {
		log.Fatal(err)
	}
	for _, file := range []string{"/etc/hosts", "/etc/hostname"} {
		if err := os.WriteFile(file, []byte("127.0.0.1 "+of+"\n"), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	log.Print("claims to be " + of)
}
