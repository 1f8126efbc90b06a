package diagnosis

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/findings"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Runbooks are all there are: the causes in their order of precedence, then the other
// findings.
func Runbooks() []causes.Runbook {
	var out []causes.Runbook
	for _, c := range causes.Catalogue() {
		r := c.Book
		r.Code, r.Drops = string(c.Name), slices.Contains(model.DropCauses(), c.Name)
		r.Refuted = c.Refutations()
		out = append(out, r)
	}
	return append(out, findings.Books()...)
}

// Explain is the runbook of a cause or another finding; known is false where there is none.
func Explain(code string) (r causes.Runbook, known bool) {
	all := Runbooks()
	i := slices.IndexFunc(all, func(r causes.Runbook) bool { return r.Code == code })
	if i < 0 {
		return causes.Runbook{}, false
	}
	return all[i], true
}
