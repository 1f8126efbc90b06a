package command

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/kube"
)

// completeFor bounds how long a shell waits.
const completeFor = 3 * time.Second

func soon(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	return context.WithTimeout(ctx, completeFor)
}

// completeTargets are pods, or workloads behind their kind.
func (o *options) completeTargets(cmd *cobra.Command, _ []string, so string) ([]cobra.Completion, cobra.ShellCompDirective) {
	client, namespace, err := o.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := soon(cmd)
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
	for _, name := range []string{"selector", "port", "image", "lifetime", "timeout"} {
		_ = root.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	for name, names := range map[string]func(*cobra.Command, []string) []string{
		"namespace": o.namespaces, "agents-namespace": o.namespaces, "container": o.containers, "context": o.contexts,
	} {
		_ = root.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return names(cmd, args), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

func (o *options) namespaces(cmd *cobra.Command, _ []string) []string {
	client, _, err := o.client()
	if err != nil {
		return nil
	}
	ctx, cancel := soon(cmd)
	defer cancel()
	names, _ := client.Namespaces(ctx) // many may not list them
	return names
}

// containers are those of the pods that are named already.
func (o *options) containers(cmd *cobra.Command, args []string) (names []string) {
	client, namespace, err := o.client()
	if err != nil || len(args) == 0 {
		return nil
	}
	ctx, cancel := soon(cmd)
	defer cancel()
	pods, err := o.pods(ctx, client, namespace, args)
	if err != nil {
		return nil
	}
	for i := range pods {
		for _, name := range kube.Containers(&pods[i]) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (o *options) contexts(*cobra.Command, []string) []string {
	config, err := o.rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}
