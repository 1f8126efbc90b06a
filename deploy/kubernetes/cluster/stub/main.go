// Command stub is what a pod of many runs in place of a server: it is called java, has a thread of
// a Tomcat's name, listens on a port, and does no more. With CLAIMS it says of itself that it is
// another, in every way that is a pod's own to write.
package main

import (
	"cmp"
	"context"
	"log"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"unsafe"
)

func main() {
	if of := os.Getenv("CLAIMS"); of != "" {
		claim(of)
	}
	port := cmp.Or(os.Getenv("LISTEN"), "8080")
	go work("http-nio-" + port + "-e") // of exec-1, as much as the kernel keeps
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", ":"+port)
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}

// work is a thread of that name, which waits. The first thread's name is the process's, and stays.
func work(name string) {
	runtime.LockOSThread()
	if syscall.Gettid() == syscall.Getpid() {
		go work(name)
		select {}
	}
	text, err := syscall.BytePtrFromString(name)
	if err != nil {
		log.Fatal(err)
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(text)), 0); errno != 0 {
		log.Fatal(errno)
	}
	select {}
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
