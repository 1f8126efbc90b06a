package assistant

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// progressEvery is how often is said how far a snapshot has come.
const progressEvery = 500 * time.Millisecond

// progress says until done is called how far a snapshot of that length has come, where
// the client asked for it.
func progress(ctx context.Context, req *mcp.CallToolRequest, length time.Duration) (done func()) {
	token := req.Params.GetProgressToken()
	if token == nil || length < progressEvery {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		began, tick := time.Now(), time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
					ProgressToken: token, Message: "reading the listeners",
					Progress: min(now.Sub(began), length).Seconds(), Total: length.Seconds(),
				})
			}
		}
	})
	return func() { cancel(); wait.Wait() }
}
