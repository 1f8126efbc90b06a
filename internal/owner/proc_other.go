//go:build !linux

package owner

// proc is for Linux only: elsewhere nothing has an owner.
type proc struct{ mount string }

func (p *proc) pids() []int                             { return nil }
func (p *proc) stat(int) (stat, error)                  { return stat{}, ErrNotSupported }
func (p *proc) uid(int) (uint32, bool)                  { return 0, false }
func (p *proc) net(int) uint64                          { return 0 }
func (p *proc) ownNet() uint64                          { return 0 }
func (p *proc) hidden() bool                            { return false }
func (p *proc) link(int, int) uint32                    { return 0 }
func (p *proc) explain(_ int, err error) error          { return err }
func (p *proc) threadNames(int, func(comm []byte) bool) {}
func (p *proc) cmdline(int) []byte                      { return nil }
func (p *proc) sockets(int, int, int, func(fd int, inode uint32) bool) (int, error) {
	return 0, ErrNotSupported
}
