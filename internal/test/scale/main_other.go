//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "scale: it builds situations on the Linux kernel")
	os.Exit(1)
}
