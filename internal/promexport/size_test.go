package promexport_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/promexport"
)

const megabyte = 1 << 20

// plainFleet is a machine that listens on many ports, of which few are Tomcats.
func plainFleet(n int) *model.Snapshot {
	s := fleet(n / 10)
	for i := len(s.Listeners); i < n; i++ {
		s.Listeners = append(s.Listeners, plain(uint16(20000+i)))
	}
	return s
}

// The clients of all are followed, which is every tenth series. The sizes are those of plain text; compressed, as Prometheus asks for it, a
// scrape is a twentieth of that.
func TestAScrapeIsSmall(t *testing.T) {
	tests := map[string]struct {
		s      *model.Snapshot
		most   int
		accept string
	}{
		"200 listeners, every tenth a Tomcat": {plainFleet(200), megabyte * 32 / 20, "identity"},
		"500 listeners, every tenth a Tomcat": {plainFleet(500), megabyte * 79 / 20, "identity"},
		"100 Tomcats, the most by default":    {fleet(100), megabyte * 5 / 4, "identity"},
		"200 Tomcats, compressed":             {fleet(200), megabyte / 8, "gzip"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := len(scrape(t, handler(tt.s), map[string]string{"Accept-Encoding": tt.accept}).body)
			t.Logf("%d bytes, %d series", got, series(collect(t, tt.s)))
			require.Less(t, got, tt.most)
		})
	}
}

func BenchmarkGather(b *testing.B) {
	for name, s := range map[string]*model.Snapshot{"plain200": plainFleet(200), "tomcat200": fleet(200), "tomcat10": fleet(10)} {
		reg := promexport.NewRegistry(source(s), time.Unix(1_700_000_000, 0), promexport.Build{})
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := reg.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkScrape(b *testing.B) {
	for name, s := range map[string]*model.Snapshot{"plain200": plainFleet(200), "tomcat200": fleet(200), "tomcat10": fleet(10)} {
		h := promexport.Handler(promexport.NewRegistry(source(s), time.Unix(1_700_000_000, 0), promexport.Build{}), slog.New(slog.DiscardHandler))
		for _, encoding := range []string{"identity", "gzip"} {
			b.Run(name+"/"+encoding, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.Time = s.Time.Add(time.Second) // another snapshot: nothing is shared
					r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
					r.Header.Set("Accept-Encoding", encoding)
					h.ServeHTTP(discard{http.Header{}, io.Discard}, r)
				}
			})
		}
	}
}

// discard is a client that reads at once.
type discard struct {
	header http.Header
	io.Writer
}

func (d discard) Header() http.Header { return d.header }
func (d discard) WriteHeader(int)     {}
