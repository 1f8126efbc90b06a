// Package httpconfig reads the settings of an HTTP client in Prometheus's format, for
// commands that a person runs.
package httpconfig

import (
	"errors"
	"fmt"
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
