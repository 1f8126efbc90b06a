// Package httpconfig reads the settings of an HTTP client in Prometheus's format, for
// commands that a person runs.
package httpconfig

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"

	"github.com/prometheus/common/config"
)

// Load reads the file of --http.config.file. The parser quotes what it cannot read,
// which may be a password: an error here has the file's name and the line.
func Load(file string) (config.HTTPClientConfig, error) {
	settings, _, err := config.LoadHTTPConfigFile(file)
	var missing *os.PathError
	switch {
	case errors.As(err, &missing):
		return config.HTTPClientConfig{}, fmt.Errorf("--http.config.file: %w", err)
	case err != nil:
		return config.HTTPClientConfig{}, fmt.Errorf("--http.config.file %s: not an HTTP client configuration in Prometheus's format%s", file, regexp.MustCompile(` ?line \d+`).FindString(err.Error()))
	}
	if err := settings.Validate(); err != nil {
		return config.HTTPClientConfig{}, fmt.Errorf("--http.config.file %s: %w", file, err)
	}
	return *settings, nil
}

// BaseURL is that of a server, as a flag gives it: without credentials, which the file has.
func BaseURL(flag, address, example string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: this is no URL: give a URL such as %s", flag, example)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, fmt.Errorf("%s %q: give a URL such as %s", flag, u.Redacted(), example)
	case u.User != nil:
		return nil, fmt.Errorf("%s %q: give user and password in --http.config.file, as basic_auth", flag, u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%s %q: give the URL without a query or fragment", flag, u.Redacted())
	}
	return u, nil
}
