package diagnosis

import "github.com/tcpdiag/tcpdiag/internal/backlog"

func (j *judge) summary(v backlog.Verdict) string { return v.Status.String() }

func (j *judge) findings(_ backlog.Verdict) []backlog.Finding { return nil }
