package procfile

import "sync"

// Buffers are what many kept files are read into, one after the other: an agent of a node
// keeps several of some kilobytes open for each pod. The zero value is ready.
type Buffers struct{ free sync.Pool }

// sharedSize is what net/netstat takes on Linux 6.18, and some; one that is too small
// costs one growth.
const sharedSize = 8 << 10

func (b *Buffers) take() *[]byte {
	if buf, ok := b.free.Get().(*[]byte); ok {
		return buf
	}
	return new(make([]byte, sharedSize))
}

// Shared is a kept file without a buffer of its own.
type Shared struct {
	file    *Kept
	buffers *Buffers
}

// Share opens a file.
func (b *Buffers) Share(name string) (*Shared, error) {
	file, err := Keep(name, 0)
	if err != nil {
		return nil, err
	}
	return &Shared{file, b}, nil
}

// Name is the file's.
func (s *Shared) Name() string { return s.file.Name }

// Read calls use with what the file says now, which is valid until it returns.
func (s *Shared) Read(use func(data []byte) error) error {
	buf := s.buffers.take()
	defer s.buffers.free.Put(buf)
	s.file.buf = *buf
	data, err := s.file.Read()
	*buf, s.file.buf = s.file.buf, nil
	if err != nil {
		return err
	}
	return use(data)
}

// Close closes the file.
func (s *Shared) Close() error { return s.file.Close() }
