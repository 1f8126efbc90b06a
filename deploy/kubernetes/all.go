package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// writeAll writes every manifest there is: the kustomizations as `kustomize
// build` prints them, and the chart with each of its values files.
func writeAll(ctx context.Context, w io.Writer) error {
	for _, folder := range []string{"sidecar", "sidecar/apart", "daemonset"} {
		text, err := kustomize(filesys.MakeFsOnDisk(), folder)
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		fmt.Fprintf(w, "---\n%s\n", text)
	}
	files, err := valuesFiles()
	if err != nil {
		return err
	}
	for name, values := range files {
		manifests, err := renderChart(ctx, chartFolder, values)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprint(w, documents(manifests))
	}
	return nil
}

// documents puts a chart's templates together as Helm does.
func documents(manifests map[string]string) string {
	var all strings.Builder
	for name, text := range manifests {
		if !strings.HasSuffix(name, ".txt") {
			all.WriteString("\n---\n" + text)
		}
	}
	return all.String()
}

// kustomize is `kustomize build` of a folder, with its own restrictions.
func kustomize(files filesys.FileSystem, folder string) ([]byte, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, folder)
	if err != nil {
		return nil, err
	}
	return built.AsYaml()
}

// valuesFiles are those of the chart's ci folder, by their names.
func valuesFiles() (map[string]map[string]any, error) {
	paths, err := filepath.Glob(filepath.Join(chartFolder, "ci", "*-values.yaml"))
	if err != nil {
		return nil, err
	}
	out := make(map[string]map[string]any, len(paths))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var values map[string]any
		if err := yaml.Unmarshal(text, &values); err != nil {
			return nil, fmt.Errorf("%q: %w", path, err)
		}
		out[filepath.Base(path)] = values
	}
	return out, nil
}
