package sockdiag

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// btfFile is a kernel's or a module's type information.
func btfFile(t *testing.T, types []uint32, names string) []byte {
	t.Helper()
	var text bytes.Buffer
	header := btfHeader{Magic: btfMagic, Version: 1, HeaderLen: 24, TypeLen: uint32(4 * len(types)), StrOff: uint32(4 * len(types)), StrLen: uint32(len(names))}
	for _, part := range []any{header, types, []byte(names)} {
		require.NoError(t, binary.Write(&text, binary.NativeEndian, part))
	}
	return text.Bytes()
}

// The kernel's names are those before the module's own.
const (
	kernelNames = "\x00owner\x00dump\x00module\x00" // owner at 1, dump at 7
	moduleNames = "inet_diag_handler\x00destroy\x00inet_diag_dump_data\x00"
	handlerName = uint32(len(kernelNames))
)

// handler is an INT and a POINTER, then the struct with members of these names.
func handler(members ...uint32) []uint32 {
	all := []uint32{0, 1 << 24, 4, 32, 0, 2 << 24, 1, handlerName, 4<<24 | uint32(len(members)), 64}
	for _, name := range members {
		all = append(all, name, 2, 0)
	}
	return all
}

func TestHandlersAreOwned(t *testing.T) {
	other := []uint32{handlerName + 26, 4<<24 | 1, 8, 1, 2, 0} // another struct that has an owner
	for name, module := range map[string]struct {
		types []uint32
		want  bool
	}{
		"owned":           {handler(1, 7), true},
		"not owned":       {handler(7, handlerName+18), false},
		"another struct":  {other, false},
		"after another":   {append(other, handler(7, 1)...), true},
		"an unknown kind": {append([]uint32{0, 31 << 24, 0}, handler(1)...), false},
		"cut short":       {handler(7, 1)[:12], false},
		"no types":        {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "vmlinux"), btfFile(t, nil, kernelNames), 0o600))
			require.False(t, handlersAreOwned(dir), "inet_diag is not loaded")
			file := btfFile(t, module.types, moduleNames)
			for length := range file { // any part of it is no evidence
				require.NoError(t, os.WriteFile(filepath.Join(dir, "inet_diag"), file[:length], 0o600))
				require.False(t, handlersAreOwned(dir), length)
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "inet_diag"), file, 0o600))
			require.Equal(t, module.want, handlersAreOwned(dir))
			require.NoError(t, os.Remove(filepath.Join(dir, "vmlinux")))
			require.False(t, handlersAreOwned(dir))
		})
	}
}
