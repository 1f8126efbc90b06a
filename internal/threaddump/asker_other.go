//go:build !linux

package threaddump

import (
	"context"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Asker is for Linux only.
type Asker struct{}

// NewAsker is for Linux only.
func NewAsker(hostproc.FS) *Asker { return &Asker{} }

// Ask is for Linux only.
func (*Asker) Ask(context.Context, hostproc.ProcessKey) (*model.Stacks, error) {
	return nil, refuse("it is for Linux only")
}
