package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
)

const (
	// beatFile is touched whenever the folder is read: who has no port is asked by it.
	beatFile  = "alive"
	beatEvery = 5 * time.Second
	// deadAfter is more than the longest --interval.
	deadAfter = 90 * time.Second
)

// heart says that the loop that reads the folder goes round.
type heart struct {
	root    *os.Root // the spool's: no link leads out of it
	at      atomic.Int64
	written time.Time
}

func (h *heart) beat() {
	now := time.Now()
	h.at.Store(now.UnixNano())
	if now.Sub(h.written) < beatEvery {
		return
	}
	h.written = now
	if h.root.Chtimes(beatFile, now, now) == nil {
		return
	}
	if f, err := h.root.OpenFile(beatFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		_ = f.Close()
	}
}

func (h *heart) alive() bool { return time.Since(time.Unix(0, h.at.Load())) < deadAfter }

// serve answers for the metrics where an address is given.
func serve(ctx context.Context, address string, m *metrics, h *heart, log *slog.Logger) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}))
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		if !h.alive() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("healthy\n"))
	})
	server := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 20 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the metrics are not served any more", "err", err)
		}
	}()
	log.Info("metrics are served", "address", listener.Addr().String())
	return func() { _ = server.Close() }, nil
}

func newHealthcheckCommand() *cobra.Command {
	var spool string
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Check a running archiver by its spool, for an image without a shell",
		Long: `healthcheck looks when the archiver that uses the spool last looked into the folder
of the incidents, and exits with 0 or 1: it needs no port. That the collector or the
bucket does not answer is no reason to restart an archiver: the metrics say it.`,
		Example: `  tcpdiag-archive healthcheck --spool /var/lib/tcpdiag-archive`,
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, err := os.Stat(filepath.Join(spool, beatFile))
			if err != nil {
				return fmt.Errorf("unhealthy: %w", err)
			}
			age := time.Since(info.ModTime())
			if age > deadAfter {
				return fmt.Errorf("unhealthy: the folder was last read %v ago", age.Round(time.Second))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "healthy: the folder was read %v ago\n", age.Round(time.Second))
			return err
		},
	}
	cmd.Flags().StringVar(&spool, "spool", defaultSpool, "folder of the archiver's --spool")
	return cmd
}
