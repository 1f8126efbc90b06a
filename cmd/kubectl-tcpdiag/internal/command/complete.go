package command

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/kube"
)

// completeFor bounds how long a shell waits.
const completeFor = 3 * time.Second

// completeTargets are pods, or workloads behind their kind.
func (o *options) completeTargets(cmd *cobra.Command, _ []string, so string) ([]cobra.Completion, cobra.ShellCompDirective) {
	client, namespace, err := o.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeFor)
	defer cancel()
	kind, _, qualified := strings.Cut(so, "/")
	if of, known := kube.KindNamed(kind); qualified && known {
		names, err := client.Workloads(ctx, of, namespace)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for i := range names {
			names[i] = kind + "/" + names[i]
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	names := []cobra.Completion{}
	for _, k := range kube.Kinds() {
		names = append(names, k.Names[0]+"/")
	}
	pods, err := client.Pods(ctx, namespace, o.labels, "")
	for i := range pods {
		if kube.NotRunning(&pods[i]) == "" {
			names = append(names, pods[i].Name)
		}
	}
	if err != nil {
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completions are those of flags.
func (o *options) completions(root *cobra.Command) {
	ways := []cobra.Completion{}
	for _, w := range kube.Ways() {
		ways = append(ways, string(w))
	}
	_ = root.RegisterFlagCompletionFunc("via", cobra.FixedCompletions(ways, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"selector", "port", "image", "lifetime", "timeout", "container"} {
		_ = root.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}
