package hsperf

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// The layout of a HotSpot JVM's performance data (PerfDataPrologue and
// PerfDataEntry of perfMemory.hpp and perfData.hpp, version 2.0, unchanged
// since JDK 5). Offsets in bytes.
const (
	perfMagic = 0xcafec0c0 // always big-endian

	prologueByteOrder   = 4 // 0 big-endian, 1 little-endian
	prologueMajor       = 5
	prologueAccessible  = 7 // 0 while the JVM is still starting
	prologueUsed        = 8
	prologueEntryOffset = 24
	prologueNumEntries  = 28
	prologueSize        = 32

	entryLength     = 0 // offset of the next entry from this one
	entryName       = 4 // offset of the zero-terminated name from this entry
	entryVectorLen  = 8 // 0 for a scalar
	entryType       = 12
	entryDataOffset = 16
	entryHeaderSize = 20
)

// perfValue is one counter: a long, or text.
type perfValue struct {
	number int64
	text   []byte // nil for numbers
	at     int    // where it stands in the file
}

// parsePerfData calls fn for each counter that is a long or a string; the JVM
// writes no others today. The slices given to fn are parts of data. Every
// length and offset in data is checked against it: the file belongs to another
// user.
func parsePerfData(data []byte, fn func(name []byte, v perfValue)) error {
	order, err := perfByteOrder(data)
	if err != nil {
		return err
	}
	used := int(int32(order.Uint32(data[prologueUsed:])))
	if used >= prologueSize && used < len(data) {
		data = data[:used]
	}
	offset := int(int32(order.Uint32(data[prologueEntryOffset:])))
	count := int(int32(order.Uint32(data[prologueNumEntries:])))
	for i := range count {
		if offset < prologueSize || offset > len(data)-entryHeaderSize {
			return fmt.Errorf("performance data: entry %d of %d at %d of %d bytes: %w", i, count, offset, len(data), hostproc.ErrMalformed)
		}
		length := int(int32(order.Uint32(data[offset+entryLength:])))
		if length < entryHeaderSize || length > len(data)-offset {
			return fmt.Errorf("performance data: entry %d of %d has length %d: %w", i, count, length, hostproc.ErrMalformed)
		}
		if err := parsePerfEntry(order, data[offset:offset+length], offset, fn); err != nil {
			return err
		}
		offset += length
	}
	return nil
}

func perfByteOrder(data []byte) (binary.ByteOrder, error) {
	if len(data) < prologueSize || binary.BigEndian.Uint32(data) != perfMagic {
		return nil, fmt.Errorf("performance data: no magic in %d bytes: %w", len(data), hostproc.ErrMalformed)
	}
	if data[prologueMajor] != 2 {
		return nil, fmt.Errorf("performance data: version %d: %w", data[prologueMajor], hostproc.ErrNotSupported)
	}
	if data[prologueAccessible] == 0 {
		return nil, fmt.Errorf("performance data: not accessible yet: %w", ErrNoPerfData)
	}
	switch data[prologueByteOrder] {
	case 0:
		return binary.BigEndian, nil
	case 1:
		return binary.LittleEndian, nil
	}
	return nil, fmt.Errorf("performance data: byte order %d: %w", data[prologueByteOrder], hostproc.ErrMalformed)
}

func parsePerfEntry(order binary.ByteOrder, e []byte, at int, fn func(name []byte, v perfValue)) error {
	nameAt := int(int32(order.Uint32(e[entryName:])))
	vector := int(int32(order.Uint32(e[entryVectorLen:])))
	dataAt := int(int32(order.Uint32(e[entryDataOffset:])))
	if nameAt < entryHeaderSize || nameAt > len(e) || dataAt < entryHeaderSize || dataAt > len(e) || vector < 0 {
		return fmt.Errorf("performance data: entry with name at %d, data at %d, %d elements: %w", nameAt, dataAt, vector, hostproc.ErrMalformed)
	}
	name, value := cString(e[nameAt:]), e[dataAt:]
	switch {
	case e[entryType] == 'J' && vector == 0 && len(value) >= 8:
		fn(name, perfValue{number: int64(order.Uint64(value)), at: at + dataAt})
	case e[entryType] == 'B' && vector > 0 && vector <= len(value):
		fn(name, perfValue{text: cString(value[:vector]), at: at + dataAt})
	}
	return nil
}

// cString cuts at the first zero byte.
func cString(b []byte) []byte {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		return b[:end]
	}
	return b
}
