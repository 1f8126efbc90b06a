package main

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collogpb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

// received is a log record as a collector has it.
type received struct {
	Event, Body, Severity string
	Resource, Attributes  map[string]string
}

// receiver takes OTLP logs over HTTP, or answers with the status that is set.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	status  int
	partial int64
	hold    chan struct{} // its answers wait until this is closed
	records []received
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := new(receiver)
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status int) { r.mu.Lock(); defer r.mu.Unlock(); r.status = status }

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.records...)
}

func values(of []*commonpb.KeyValue) map[string]string {
	out := make(map[string]string)
	for _, a := range of {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			out[a.Key] = v.StringValue
		default:
			out[a.Key] = strings.TrimSpace(a.Value.String())
		}
	}
	return out
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status != 0 {
		if r.status < http.StatusBadRequest { // something else than a collector: a page to log in at
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Location", "/login")
		}
		w.WriteHeader(r.status)
		return
	}
	body := q.Body.(io.Reader)
	if q.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(q.Body)
	}
	text, _ := io.ReadAll(body)
	var logs collogpb.ExportLogsServiceRequest
	if q.URL.Path != "/v1/logs" || proto.Unmarshal(text, &logs) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer := new(collogpb.ExportLogsServiceResponse)
	if r.partial > 0 {
		answer.PartialSuccess = &collogpb.ExportLogsPartialSuccess{RejectedLogRecords: r.partial, ErrorMessage: "too old"}
	} else {
		for _, of := range logs.ResourceLogs {
			for _, scope := range of.ScopeLogs {
				for _, l := range scope.LogRecords {
					r.records = append(r.records, received{l.EventName, l.Body.GetStringValue(), l.SeverityText, values(of.Resource.Attributes), values(l.Attributes)})
				}
			}
		}
	}
	if r.hold != nil {
		r.mu.Unlock()
		<-r.hold
		r.mu.Lock()
	}
	out, _ := proto.Marshal(answer)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(out)
}

func events(of []received) (out []string) {
	for _, r := range of {
		out = append(out, r.Attributes["tcpdiag.incident.id"]+" "+strings.TrimPrefix(r.Event, "tcpdiag.incident."))
	}
	return out
}

func requireOnce(t *testing.T, of []received) {
	t.Helper()
	seen := make(map[string]bool)
	for _, r := range of {
		uid := r.Attributes["log.record.uid"]
		require.Len(t, uid, 32)
		require.False(t, seen[uid], "sent twice: %v", r)
		seen[uid] = true
	}
}
