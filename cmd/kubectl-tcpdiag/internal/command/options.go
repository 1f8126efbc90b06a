package command

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/ask"
	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/kube"
)

// options are the flags of all commands.
type options struct {
	rules      *clientcmd.ClientConfigLoadingRules
	overrides  clientcmd.ConfigOverrides
	ask        ask.Options
	via        string
	all        bool
	labels     string
	output     string
	verbose    bool
	exitStatus bool
}

func newOptions() *options {
	return &options{rules: clientcmd.NewDefaultClientConfigLoadingRules(), ask: ask.Options{MostAdded: 5}}
}

// released is the image of a build that is no release.
const released = "0.1.0"

// image is the released one of the same version.
func image() string {
	v := strings.TrimPrefix(version.Version, "v")
	if v == "" || strings.ContainsAny(v, "-+ ") || !strings.Contains(v, ".") {
		v = released
	}
	return "tcpdiag/tcpdiag:" + v
}

func (o *options) register(flags *pflag.FlagSet) {
	clientcmd.BindOverrideFlags(&o.overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	flags.StringVar(&o.rules.ExplicitPath, "kubeconfig", "", "path of the kubeconfig file")
	flags.StringVarP(&o.labels, "selector", "l", "", "pods with these labels")
	flags.BoolVarP(&o.all, "all-namespaces", "A", false, "pods of all namespaces")
	flags.StringVarP(&o.ask.Container, "container", "c", "", "only this container's listeners; the one that an ephemeral container sees (default: the pod's first)")
	flags.IntSliceVar(&o.ask.Ports, "port", nil, "only this port (repeatable)")
	flags.StringVar(&o.via, "via", "", "ask only in this way: sidecar, node or ephemeral (default: the first of them that answers)")
	flags.BoolVar(&o.ask.ThreadDump, "thread-dump", false, "ask the JVM for a thread dump, as jstack does, and show where its threads are (frames only); by a sidecar or ephemeral container")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "also print what the answer rests on: evidence, where limits are set, other findings, what could not be read")
	flags.StringVar(&o.ask.Image, "image", image(), "image of an ephemeral container")
	flags.DurationVar(&o.ask.Lifetime, "lifetime", 15*time.Minute, "time after which an ephemeral container ends by itself")
	flags.DurationVar(&o.ask.Patience, "timeout", 30*time.Second, "maximum time to wait for an ephemeral container")
	flags.StringVar(&o.ask.AgentsNamespace, "agents-namespace", "tcpdiag", "namespace of the node agents")
}

func (o *options) validate() error {
	o.ask.Via = kube.Way(o.via)
	switch {
	case o.via != "" && o.ask.Via != kube.Sidecar && o.ask.Via != kube.Node && o.ask.Via != kube.Ephemeral:
		return usagef("--via %q: give sidecar, node or ephemeral", o.via)
	case o.ask.ThreadDump && o.ask.Via == kube.Node:
		return usagef("--thread-dump: a node agent is not the JVM's user and cannot ask it; leave --via out, or give sidecar or ephemeral")
	case o.output != "" && o.output != "text" && o.output != "json":
		return usagef("--output %q: give text or json", o.output)
	case o.ask.Lifetime < time.Minute || o.ask.Lifetime > 24*time.Hour:
		return usagef("--lifetime %v: give a time from 1m to 24h", o.ask.Lifetime)
	case o.ask.Patience <= 0:
		return usagef("--timeout %v: give a time such as 30s", o.ask.Patience)
	}
	for _, p := range o.ask.Ports {
		if p < 1 || p > 65535 {
			return usagef("--port %d: give a port from 1 to 65535", p)
		}
	}
	return nil
}

// client is by the kubeconfig, with the namespace that is meant: "" for all.
func (o *options) client() (*kube.Client, string, error) {
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(o.rules, &o.overrides)
	config, err := loaded.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, "", errors.New("no cluster is configured: give --kubeconfig, set KUBECONFIG, or log in to one (~/.kube/config)")
	case err != nil && o.overrides.CurrentContext != "":
		return nil, "", fmt.Errorf("%w: kubectl config get-contexts lists those that are there", err)
	case err != nil:
		return nil, "", err
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, "", err
	}
	if o.all {
		namespace = ""
	}
	client, err := kube.New(config, "kubectl-tcpdiag/"+version.Version)
	return client, namespace, err
}

// asker is the client with the ways in which it asks.
func (o *options) asker(cmd *cobra.Command) (*kube.Client, *ask.Asker, string, error) {
	if err := o.validate(); err != nil {
		return nil, nil, "", err
	}
	client, namespace, err := o.client()
	if err != nil {
		return nil, nil, "", err
	}
	return client, ask.New(client, o.ask, cmd.ErrOrStderr()), namespace, nil
}
