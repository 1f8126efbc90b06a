package cli

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
)

const (
	// healthTimeout is for the whole question, connecting included.
	healthTimeout = 2 * time.Second
	// healthAddressEnv gives --address where a command line cannot be changed:
	// an image without a shell knows no other way from `docker run`.
	healthAddressEnv     = "TCPDIAG_HEALTHCHECK_ADDRESS"
	healthAddressDefault = "http://127.0.0.1:10889"
)

func newHealthcheckCommand() *cobra.Command {
	address := os.Getenv(healthAddressEnv)
	if address == "" {
		address = healthAddressDefault
	}
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Check a running agent, for HEALTHCHECK in an image without a shell",
		Long: `healthcheck asks /-/healthy of a running agent, waits at most 2 s, and exits with
0 or 1. It says nothing of Tomcat's state. Like the kubelet it does not
verify the certificate behind https, and sends no password: an agent that asks
for one, or for a client certificate, is there. ` + healthAddressEnv + `
takes the place of --address when that is not given.`,
		Example: `  tcpdiag healthcheck
  tcpdiag healthcheck --address https://127.0.0.1:10889`,
		Args: cobra.NoArgs,
		RunE: command.Run(func(cmd *cobra.Command) error {
			target, err := healthURL(address)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
			defer cancel()
			answer, err := askHealth(ctx, target)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "healthy: %s\n", answer)
			return err
		}),
	}
	cmd.Flags().StringVar(&address, "address", address, "base URL of the agent")
	return cmd
}

// healthURL is what to ask of the agent at address.
func healthURL(address string) (string, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", command.Usagef("--address %q: give a URL such as %s", address, healthAddressDefault)
	case u.User != nil:
		return "", command.Usagef("--address %q: give it without user and password, none is sent", u.Redacted())
	}
	return u.JoinPath("-", "healthy").String(), nil
}

// askHealth returns what the agent answered, or why it cannot be called
// healthy.
func askHealth(ctx context.Context, target string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return "", err
	}
	client, wantsCertificate := healthClient()
	answer, err := client.Do(request)
	switch {
	case err != nil && wantsCertificate() && ctx.Err() == nil:
		return target + " asks for a client certificate", nil
	case err != nil:
		return "", fmt.Errorf("unhealthy: %w", err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		return target + " answers", nil
	case http.StatusUnauthorized: // the exporter-toolkit asks for it in front of every page
		return target + " asks for a password", nil
	}
	return "", fmt.Errorf("unhealthy: GET %q: %s: %s", target, answer.Status, firstLine(answer.Body))
}

// healthClient follows neither a proxy of the environment's nor a redirect:
// another server's answer says nothing of the agent. wantsCertificate reports
// whether the server asked for a client certificate. (The alert that follows is
// no proof: with TLS 1.3 it can be lost to the reset of the connection.)
func healthClient() (client *http.Client, wantsCertificate func() bool) {
	var asked atomic.Bool
	config := &tls.Config{
		// The certificate is for the name that scrapes use, not for loopback,
		// and there is nothing secret in the question.
		InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked.Store(true)
			return &tls.Certificate{}, nil // none
		},
	}
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: config, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, asked.Load
}

// firstLine is what a person needs of a page that should not have come.
func firstLine(r io.Reader) string {
	line := bufio.NewScanner(io.LimitReader(r, 200))
	line.Scan()
	return line.Text()
}
