package command

import (
	"context"

	core "k8s.io/api/core/v1"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/ask"
)

// watched are the pods of which an agent that is there watches a listener: nothing is added
// to any.
func watched(ctx context.Context, asker *ask.Asker, pods []core.Pod) ([]result, error) {
	covered, err := asker.Covered(ctx, pods)
	if err != nil {
		return nil, err
	}
	return open(ctx, asker, covered), nil
}
