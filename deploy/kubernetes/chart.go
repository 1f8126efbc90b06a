package main

import (
	"context"
	"fmt"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

const chartFolder = "../helm/tcpdiag"

// renderChart renders a chart's templates with these values over its own, by
// their paths. Values that its schema does not allow are an error.
func renderChart(ctx context.Context, path string, values map[string]any) (map[string]string, error) {
	c, err := loader.Load(path)
	if err != nil {
		return nil, fmt.Errorf("chart %q: %w", path, err)
	}
	release := common.ReleaseOptions{Name: releaseName, Namespace: releaseNamespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c, values, release, nil)
	if err != nil {
		return nil, fmt.Errorf("chart %q: %w", path, err)
	}
	return engine.Engine{Strict: true}.RenderWithContext(ctx, c, all)
}
