package classpath

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
)

// The wire format is PKWARE's APPNOTE.TXT: the end of central directory record
// (4.3.16), its zip64 form (4.3.14, 4.3.15) and the central directory's headers
// (4.3.12). archive/zip is not used because it keeps a record for each entry
// that the file claims to have, which a hostile jar can make gigabytes.
const (
	endSignature   = 0x06054b50
	end64Signature = 0x06064b50
	loc64Signature = 0x07064b50
	entrySignature = 0x02014b50
	localSignature = 0x04034b50
	endLen         = 22
	end64Len       = 56
	loc64Len       = 20
	entryLen       = 46
	localLen       = 30
	maxEndComment  = 1<<16 - 1
	methodStored   = 0
	methodDeflated = 8
	zip64ExtraID   = 1
	sizeIn64       = 1<<32 - 1
	flagEncrypted  = 1
)

// errZip is a file that is not a usable zip archive.
var errZip = errors.New("not a usable zip archive")

// zipEntry is one entry of the central directory.
type zipEntry struct {
	name    string
	method  uint16
	flags   uint16
	packed  int64
	size    int64
	headers int64 // offset of the local header
}

// zipDir is an archive's central directory, the entries that were asked for.
type zipDir struct {
	r       io.ReaderAt
	entries map[string]zipEntry
	names   []string // in the archive's order
	inflate io.ReadCloser
}

// readZip reads the central directory of an archive of the given size and
// keeps the entries for which keep answers true. Nothing else is read.
func readZip(r io.ReaderAt, size int64, keep func(name []byte) bool, left *archives) (*zipDir, error) {
	end, err := findEnd(r, size)
	if err != nil {
		return nil, err
	}
	if end.length > left.directory {
		return nil, ErrJars
	}
	left.directory -= end.length
	z := &zipDir{r: r, entries: map[string]zipEntry{}}
	buffer := min(max(end.length, entryLen), 64<<10)
	in := bufio.NewReaderSize(io.NewSectionReader(r, end.start, end.length), int(buffer))
	head := make([]byte, entryLen)
	for {
		if _, err := io.ReadFull(in, head); errors.Is(err, io.EOF) {
			return z, nil
		} else if err != nil {
			return nil, fmt.Errorf("%w: central directory: %w", errZip, err)
		}
		if binary.LittleEndian.Uint32(head) != entrySignature {
			return z, nil // a digital signature or padding ends the list
		}
		if err := z.entry(in, head, end.shift, keep, left); err != nil {
			return nil, err
		}
	}
}

// entry reads the variable part of one header and keeps the entry if wanted.
func (z *zipDir) entry(in *bufio.Reader, head []byte, shift int64, keep func([]byte) bool, left *archives) error {
	le := binary.LittleEndian
	nameLen, extraLen, commentLen := int(le.Uint16(head[28:])), int(le.Uint16(head[30:])), int(le.Uint16(head[32:]))
	buf, err := peek(in, nameLen+extraLen)
	if err != nil {
		return fmt.Errorf("%w: entry: %w", errZip, err)
	}
	if name := buf[:nameLen]; keep(name) {
		e := zipEntry{
			name: string(name), flags: le.Uint16(head[8:]), method: le.Uint16(head[10:]),
			packed: int64(le.Uint32(head[20:])), size: int64(le.Uint32(head[24:])), headers: int64(le.Uint32(head[42:])),
		}
		e.wide(buf[nameLen:])
		e.headers += shift
		if left.entries < 1 || left.names < nameLen {
			return ErrJars
		}
		left.entries, left.names = left.entries-1, left.names-nameLen
		if _, twice := z.entries[e.name]; !twice {
			z.names = append(z.names, e.name)
		}
		z.entries[e.name] = e
	}
	_, err = in.Discard(nameLen + extraLen + commentLen)
	if err != nil {
		return fmt.Errorf("%w: entry: %w", errZip, err)
	}
	return nil
}

// peek returns the next n bytes; n is at most twice 64 KiB, more than the
// reader's buffer only for names and extras that no real jar has, or that are
// longer than the directory itself.
func peek(in *bufio.Reader, n int) ([]byte, error) {
	if n > in.Size() {
		return nil, fmt.Errorf("name and extra field of %d bytes", n)
	}
	return in.Peek(n)
}

// wide replaces the fields that say "see the zip64 extra field" (4.5.3).
func (e *zipEntry) wide(extra []byte) {
	le := binary.LittleEndian
	for len(extra) >= 4 {
		id, n := le.Uint16(extra), int(le.Uint16(extra[2:]))
		extra = extra[4:]
		if n > len(extra) {
			return
		}
		if field := extra[:n]; id == zip64ExtraID {
			for _, v := range []*int64{&e.size, &e.packed, &e.headers} {
				if *v == sizeIn64 && len(field) >= 8 {
					*v, field = int64(le.Uint64(field)), field[8:]
				}
			}
		}
		extra = extra[n:]
	}
}

// directory says where the central directory is. shift is added to every
// offset: a script in front of a "fully executable" jar moves them.
type directory struct{ start, length, shift int64 }

// findEnd finds the end of central directory record in the last 64 KiB; without
// a comment, which no build tool writes, it is the last thing of all.
func findEnd(r io.ReaderAt, size int64) (directory, error) {
	if dir, err := findEndIn(r, size, endLen); err == nil {
		return dir, nil
	}
	return findEndIn(r, size, endLen+maxEndComment)
}

func findEndIn(r io.ReaderAt, size, last int64) (directory, error) {
	n := min(size, last)
	tail := make([]byte, n)
	if _, err := r.ReadAt(tail, size-n); err != nil && !errors.Is(err, io.EOF) {
		return directory{}, fmt.Errorf("%w: %w", errZip, err)
	}
	for i := len(tail) - endLen; i >= 0; i-- {
		rec := tail[i:]
		if binary.LittleEndian.Uint32(rec) != endSignature || i+endLen+int(binary.LittleEndian.Uint16(rec[20:])) > len(tail) {
			continue
		}
		return locate(r, rec, size-n+int64(i))
	}
	return directory{}, fmt.Errorf("%w: no end of central directory", errZip)
}

// locate reads the record at offset at.
func locate(r io.ReaderAt, rec []byte, at int64) (directory, error) {
	le := binary.LittleEndian
	length, offset, end := int64(le.Uint32(rec[12:])), int64(le.Uint32(rec[16:])), at
	if length == sizeIn64 || offset == sizeIn64 || le.Uint16(rec[10:]) == 1<<16-1 {
		if l, o, e, ok := locate64(r, at); ok {
			length, offset, end = l, o, e
		}
	}
	start := end - length
	if length < 0 || offset < 0 || start < offset {
		return directory{}, fmt.Errorf("%w: central directory of %d bytes at %d ends at %d", errZip, length, offset, end)
	}
	if length > maxDirectory {
		return directory{}, fmt.Errorf("central directory of %d bytes: %w", length, bounded.ErrTooLarge)
	}
	return directory{start: start, length: length, shift: start - offset}, nil
}

// locate64 follows the zip64 locator in front of the record at offset at.
func locate64(r io.ReaderAt, at int64) (length, offset, end int64, ok bool) {
	le := binary.LittleEndian
	loc, rec := make([]byte, loc64Len), make([]byte, end64Len)
	if _, err := r.ReadAt(loc, at-loc64Len); err != nil || le.Uint32(loc) != loc64Signature {
		return 0, 0, 0, false
	}
	// The locator's offset does not count a script in front of the archive;
	// the record is nearly always just in front of its locator.
	for _, end = range []int64{int64(le.Uint64(loc[8:])), at - loc64Len - end64Len} {
		if end < 0 {
			continue
		}
		if _, err := r.ReadAt(rec, end); err == nil && le.Uint32(rec) == end64Signature {
			return int64(le.Uint64(rec[40:])), int64(le.Uint64(rec[48:])), end, true
		}
	}
	return 0, 0, 0, false
}

// section is the place of an entry's bytes in the archive.
func (z *zipDir) section(name string) (zipEntry, *io.SectionReader, error) {
	e, ok := z.entries[name]
	if !ok {
		return e, nil, fmt.Errorf("entry %q: %w", name, errNoEntry)
	}
	if e.flags&flagEncrypted != 0 {
		return e, nil, fmt.Errorf("entry %q: %w: encrypted", name, errZip)
	}
	local := make([]byte, localLen)
	if _, err := z.r.ReadAt(local, e.headers); err != nil {
		return e, nil, fmt.Errorf("entry %q: %w: %w", name, errZip, err)
	}
	le := binary.LittleEndian
	if le.Uint32(local) != localSignature || e.packed < 0 {
		return e, nil, fmt.Errorf("entry %q: %w: no local header (replaced while running?)", name, errZip)
	}
	start := e.headers + localLen + int64(le.Uint16(local[26:])) + int64(le.Uint16(local[28:]))
	return e, io.NewSectionReader(z.r, start, e.packed), nil
}

// errNoEntry is an entry that the archive does not have.
var errNoEntry = errors.New("no such entry")

// read returns an entry's content, uncompressed, of at most limit bytes. The
// bound is on what comes out of the inflater, whatever the headers claim.
func (z *zipDir) read(name string, limit int64) ([]byte, error) {
	e, in, err := z.section(name)
	if err != nil {
		return nil, err
	}
	switch e.method {
	case methodStored:
		return bounded.Read(in, name, limit, e.size)
	case methodDeflated:
		return bounded.Read(z.inflater(in), name, limit, e.size)
	}
	return nil, fmt.Errorf("entry %q: %w: compression method %d", name, errZip, e.method)
}

// inflater uses one decompressor again: each has 40 KiB of tables.
func (z *zipDir) inflater(in io.Reader) io.Reader {
	if again, ok := z.inflate.(flate.Resetter); ok && again.Reset(in, nil) == nil {
		return z.inflate
	}
	z.inflate = flate.NewReader(in)
	return z.inflate
}

// nested opens an archive inside the archive. A stored one is read in place, a
// deflated one is inflated into memory first.
func (z *zipDir) nested(name string, keep func([]byte) bool, left *archives) (*zipDir, error) {
	e, in, err := z.section(name)
	if err != nil {
		return nil, err
	}
	if e.method == methodStored {
		return readZip(in, in.Size(), keep, left)
	}
	data, err := z.read(name, left.inflated)
	if err != nil {
		left.inflated = 0 // it was inflated up to that size
		return nil, err
	}
	left.inflated -= int64(len(data))
	return readZip(bytes.NewReader(data), int64(len(data)), keep, left)
}

// Bounds on the class path and its archives, of all jars together. An application in real
// life stays below a tenth of each.
const (
	maxClassPath     = 1_000
	maxManifest      = 256 << 10
	maxLoaderFile    = 1 << 20  // bytes of loader.properties
	maxDirectory     = 16 << 20 // bytes of central directories
	maxEntries       = 60_000   // entries kept
	maxEntryNames    = 6 << 20  // bytes of their names
	maxNestedDeflate = 12 << 20 // a nested jar that is compressed is held in memory
	maxOpenJars      = 512
)

// archives is what is left of what may be read and held of all jars together: a
// class path can name one jar a thousand times, and a jar can hold thousands.
type archives struct {
	directory int64 // bytes of central directories
	inflated  int64 // bytes of nested jars that are compressed
	entries   int   // entries kept
	names     int   // bytes of their names
}

func newArchives() archives {
	return archives{directory: maxDirectory, inflated: maxNestedDeflate, entries: maxEntries, names: maxEntryNames}
}

// ErrJars is a class path whose jars hold more than is read.
var ErrJars = bounded.TooLarge("jars beyond 512 open, 16 MiB of directories, 60,000 entries or 12 MiB of compressed jars")
