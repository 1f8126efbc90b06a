package agent

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

// withShares adds what was refused and evicted to what is exported.
func withShares(l *shares.Ledger, snapshot func() *model.Snapshot) func() *model.Snapshot {
	return func() *model.Snapshot {
		s := snapshot()
		if s == nil {
			return nil
		}
		published := *s
		published.Self.Shares = l.Counts()
		return &published
	}
}
