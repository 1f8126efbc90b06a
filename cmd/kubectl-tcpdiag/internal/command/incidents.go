package command

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/ask"
	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
)

func newIncidents(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "incidents",
		Short: "List the incidents that the agents of the cluster have recorded, the latest first",
		Long: `incidents asks every node agent, and the sidecars of the namespace (-A: of all
namespaces), for what they recorded. The report of one is on the page of the agent that
has it, and tcpdiag report makes it from the recording (docs/incidents.md).`,
		Example: `  kubectl tcpdiag incidents
  kubectl tcpdiag incidents -A -o json | jq '.incidents[0]'`,
		Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error { return o.incidents(cmd) }),
	}
	registerOutput(cmd, &o.output)
	return cmd
}

func (o *options) incidents(cmd *cobra.Command) error {
	client, asker, namespace, err := o.asker(cmd)
	if err != nil {
		return err
	}
	found, failed, err := asker.Incidents(cmd.Context(), client, namespace)
	if err != nil {
		return err
	}
	for _, err := range failed {
		complain(cmd.ErrOrStderr(), err)
	}
	if o.output == "json" {
		err = incidentsJSON(cmd.OutOrStdout(), found)
	} else {
		err = incidentsText(cmd.OutOrStdout(), found)
	}
	if err == nil && len(failed) > 0 {
		err = &reported{len(failed)}
	}
	return err
}

func incidentsJSON(w io.Writer, found []ask.Incident) error {
	return render.Document(w, struct {
		Schema    string         `json:"schema"`
		Incidents []ask.Incident `json:"incidents"`
	}{api.IncidentsSchema, append([]ask.Incident{}, found...)}, "  ")
}

func incidentsText(w io.Writer, found []ask.Incident) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(w, "No incident is recorded.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "BEGAN\tSTATUS\tLISTENER\tWHAT\tAGENT\tID")
	for i := range found {
		one := &found[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", one.Began.UTC().Format("2006-01-02 15:04:05Z"), short(one.Status), short(where(one)), short(one.Title), one.Agent, short(one.ID))
	}
	return t.Flush()
}

// where is the listener as people know it.
func where(one *ask.Incident) string {
	if one.Pod != nil {
		return fmt.Sprintf("%s/%s:%d", one.Pod.Namespace, one.Pod.Name, one.Port)
	}
	return one.Address
}

// short is a text of an agent's, bounded.
func short(text string) string {
	const most = 120
	if text = model.Printable(text); len(text) > most {
		text = text[:most] + "…"
	}
	return text
}
