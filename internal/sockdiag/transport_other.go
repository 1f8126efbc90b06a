//go:build !linux

package sockdiag

type transport struct{}

func openTransport() (transport, uint32, error) { return transport{}, 0, ErrNotSupported }

func (*transport) send([]byte) error                 { return ErrNotSupported }
func (*transport) receive([]byte) (int, error)       { return 0, ErrNotSupported }
func (*transport) sendAtOnce([]byte) error           { return ErrNotSupported }
func (*transport) receiveAtOnce([]byte) (int, error) { return 0, ErrNotSupported }
func (*transport) close() error                      { return ErrClosed }
