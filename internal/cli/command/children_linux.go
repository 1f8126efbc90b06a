package command

import (
	"math"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/memory"
	"github.com/tcpdiag/tcpdiag/internal/sandbox"
)

func serveMemory() error {
	limits := sandbox.Limits{Memory: 32 << 20, CPU: math.MaxUint64, Files: 32}
	if err := sandbox.OnlyOpen(limits); err != nil {
		return err
	}
	return memory.Serve()
}
