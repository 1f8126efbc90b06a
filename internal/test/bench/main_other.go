//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: it measures the Linux kernel's interfaces")
	os.Exit(1)
}
