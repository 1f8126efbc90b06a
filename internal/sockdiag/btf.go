package sockdiag

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
)

// typeInformation is where the kernel shows its types and its modules' (BTF) to
// any user, since 5.4 and 5.11.
const typeInformation = "/sys/kernel/btf"

// handlersAreOwned is whether struct inet_diag_handler has the member owner: a
// request then holds the module that answers it, where before it held a lock. The
// member came with the removal of the locks (6.9), which leaves nothing else behind
// that a program could ask for.
//
// False where it cannot be known: the kernel shows no types of modules, inet_diag
// is not loaded yet, or it is no module (its types are then among the five
// megabytes of the kernel's own).
func handlersAreOwned(dir string) bool {
	kernel, err := os.Open(filepath.Join(dir, "vmlinux"))
	if err != nil {
		return false
	}
	defer kernel.Close()
	module, err := os.ReadFile(filepath.Join(dir, "inet_diag"))
	if err != nil {
		return false
	}
	info, ok := readTypes(kernel, module)
	return ok && info.has("inet_diag_handler", "owner")
}

// types are a module's: their names are its own, or the kernel's where that has
// the same string.
type types struct {
	all     []byte // struct btf_type, one after the other
	names   []byte
	kernel  io.ReaderAt
	namesAt int64  // of the kernel, in its file
	length  uint32 // of those: the module's own follow
}

// btfHeader is struct btf_header.
type btfHeader struct {
	Magic          uint16
	Version, Flags uint8
	HeaderLen      uint32
	TypeOff        uint32
	TypeLen        uint32
	StrOff         uint32
	StrLen         uint32
}

// btfMagic is BTF_MAGIC, in this machine's byte order.
const btfMagic = 0xeb9f

func readTypes(kernel io.ReaderAt, module []byte) (types, bool) {
	var base, own btfHeader
	size := int64(binary.Size(base))
	if binary.Read(io.NewSectionReader(kernel, 0, size), binary.NativeEndian, &base) != nil ||
		binary.Read(bytes.NewReader(module), binary.NativeEndian, &own) != nil ||
		base.Magic != btfMagic || own.Magic != btfMagic {
		return types{}, false
	}
	all, ok := cut(module, uint64(own.HeaderLen)+uint64(own.TypeOff), own.TypeLen)
	names, some := cut(module, uint64(own.HeaderLen)+uint64(own.StrOff), own.StrLen)
	at := int64(base.HeaderLen) + int64(base.StrOff)
	return types{all: all, names: names, kernel: kernel, namesAt: at, length: base.StrLen}, ok && some
}

func cut(b []byte, at uint64, length uint32) ([]byte, bool) {
	if end := at + uint64(length); end <= uint64(len(b)) {
		return b[at:end], true
	}
	return nil, false
}

// longestName is enough for the names that are compared here.
const longestName = 32

func (t types) name(offset uint32) string {
	var text []byte
	if offset < t.length {
		text = make([]byte, longestName)
		n, _ := t.kernel.ReadAt(text, t.namesAt+int64(offset))
		text = text[:n]
	} else if at := offset - t.length; uint64(at) < uint64(len(t.names)) {
		text = t.names[at:]
	}
	name, _, _ := bytes.Cut(text, []byte{0})
	return string(name)
}

// The parts of struct btf_type, and of struct btf_member: three 32-bit words.
const (
	btfTypeLen   = 12
	btfMemberLen = 12
	btfStruct    = 4 // BTF_KIND_STRUCT
)

// has is whether a struct has a member.
func (t types) has(structure, member string) bool {
	for rest := t.all; len(rest) >= btfTypeLen; {
		name, info := binary.NativeEndian.Uint32(rest), binary.NativeEndian.Uint32(rest[4:])
		kind, n := info>>24&0x1f, info&0xffff
		length, ok := following(kind, n)
		if !ok || uint64(len(rest)) < btfTypeLen+uint64(length) {
			return false
		}
		members := rest[btfTypeLen : btfTypeLen+length]
		if rest = rest[btfTypeLen+length:]; kind == btfStruct && t.name(name) == structure {
			return t.among(members, member)
		}
	}
	return false
}

func (t types) among(members []byte, member string) bool {
	for ; len(members) >= btfMemberLen; members = members[btfMemberLen:] {
		if t.name(binary.NativeEndian.Uint32(members)) == member {
			return true
		}
	}
	return false
}

// following is how many bytes come after a type's struct btf_type: by its kind
// (include/uapi/linux/btf.h), for n members, values or parameters.
func following(kind, n uint32) (length uint32, known bool) {
	switch kind {
	case 4, 5, 15, 19: // BTF_KIND_STRUCT, UNION, DATASEC, ENUM64
		return 12 * n, true
	case 6, 13: // ENUM, FUNC_PROTO
		return 8 * n, true
	case 3: // ARRAY
		return 12, true
	case 1, 14, 17: // INT, VAR, DECL_TAG
		return 4, true
	case 2, 7, 8, 9, 10, 11, 12, 16, 18: // what leads to another type, FLOAT
		return 0, true
	}
	return 0, false
}
