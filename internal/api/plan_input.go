package api

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/plan"
)

// Input is what the document says was, or is to be, simulated.
func (in *PlanInput) Input() plan.Input {
	out := plan.Input{
		Requests:           in.Requests,
		Duration:           duration(in.DurationSeconds),
		ServiceTime:        duration(&in.ServiceTimeSeconds),
		Threads:            in.Threads,
		MaxConnections:     in.MaxConnections,
		AcceptCount:        in.AcceptCount,
		InForce:            in.InForce,
		ClientTimeout:      duration(in.ClientTimeoutSeconds),
		TimeoutFromConnect: in.ClientTimeoutFrom == "connect",
		ConnectTimeout:     duration(in.ConnectTimeoutSeconds),
		SynRetries:         plan.SynRetries(in.SynRetries),
		Syncookies:         in.Syncookies,
		AbortOnOverflow:    in.AbortOnOverflow,
		Somaxconn:          in.Somaxconn,
		MaxSynBacklog:      in.MaxSynBacklog,
		RoundTrip:          duration(&in.RoundTripSeconds),
		BackendConnections: in.BackendConnections,
		BackendTime:        duration(in.BackendTimeSeconds),
	}
	if in.Rate != nil {
		out.Rate = *in.Rate
	}
	return out
}

// duration is 0 for seconds that are absent.
func duration(seconds *float64) time.Duration {
	if seconds == nil {
		return 0
	}
	return time.Duration(*seconds * float64(time.Second))
}
