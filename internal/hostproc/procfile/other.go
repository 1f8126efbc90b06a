//go:build !linux

package procfile

import "os"

// Read is os.ReadFile on other systems.
func Read(path string, _ []byte) ([]byte, error) { return os.ReadFile(path) }

// CountNumbers is for Linux only.
func CountNumbers(string) (int, error) { return 0, ErrNotSupported }
