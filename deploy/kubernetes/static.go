package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// The release that the static manifests are of.
const (
	releaseName      = "tcpdiag"
	releaseNamespace = "tcpdiag"
)

// static is a file that is kept rendered, for those who do not use Helm.
type static struct {
	path      string
	templates []string // of the chart, in this order
	values    map[string]any
	flags     string // the values as flags of helm template
}

func statics() []static {
	return []static{
		{
			path:      "daemonset/tcpdiag.yaml",
			templates: []string{"serviceaccount.yaml", "daemonset.yaml"},
		},
		{
			path:      "daemonset/podmonitor.yaml",
			templates: []string{"podmonitor.yaml"},
			values:    map[string]any{"podMonitor": map[string]any{"enabled": true}},
			flags:     " --set podMonitor.enabled=true",
		},
	}
}

// render is what the file should hold.
func (s static) render(ctx context.Context) (string, error) {
	manifests, err := renderChart(ctx, chartFolder, s.values)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.path, err)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# Rendered from deploy/helm/tcpdiag by `make manifests`: change the chart, not this\n"+
		"# file. The same as\n#\n#   helm template %s deploy/helm/tcpdiag --namespace %s%s", releaseName, releaseNamespace, s.flags)
	for _, name := range s.templates {
		fmt.Fprintf(&out, " \\\n#     --show-only templates/%s", name)
	}
	out.WriteString("\n")
	for _, name := range s.templates {
		text := strings.TrimSpace(manifests["tcpdiag/templates/"+name])
		if text == "" {
			return "", fmt.Errorf("%s: template %q renders to nothing", s.path, name)
		}
		out.WriteString("---\n" + text + "\n")
	}
	return out.String(), nil
}

func (s static) write(ctx context.Context) error {
	text, err := s.render(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(s.path, []byte(text), 0o644)
}
