package assistant

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The resources' addresses.
const (
	runbookURI  = "tcpdiag://runbook/"
	incidentURI = "tcpdiag://incident/"
)

func (s *server) addResources(to *mcp.Server) {
	for _, r := range s.runbooks {
		text := r.page()
		to.AddResource(&mcp.Resource{
			URI: runbookURI + r.Cause, Name: r.Cause, Title: "Runbook: " + r.Title, MIMEType: "text/markdown", Size: int64(len(text)),
			Description: "What to check and to change when tcpdiag reports " + r.Cause + ".",
		}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return contents(req.Params.URI, "text/markdown", text), nil
		})
	}
	to.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: incidentURI + "{id}", Name: "incident", Title: "Report of an incident", MIMEType: "application/json",
		Description: "A recorded incident (tcpdiag.incident/v1) by its ID: the tool incidents lists them. " + notice,
	}, s.readIncident)
}

func contents(uri, mime, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mime, Text: text}}}
}

func (s *server) readIncident(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	i, err := s.incident(ctx, strings.TrimPrefix(req.Params.URI, incidentURI))
	switch {
	case errors.Is(err, errNoID), errors.Is(err, ErrUnknown):
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	case err != nil:
		return nil, errors.New(plain(err.Error()))
	}
	i.Seconds = first(i.Seconds, maxSeconds)
	document, err := json.Marshal(i)
	if err != nil || len(document) > maxAnswer {
		return nil, errors.New("the report is too large for a resource: ask the tool report")
	}
	return contents(req.Params.URI, "application/json", string(document)), nil
}
