package springboot

import (
	"encoding/xml"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// parseXMLProperties reads Java's XML form of a properties file
// (Properties.loadFromXML). encoding/xml expands no entities of the document.
func parseXMLProperties(data []byte, label string, q *quota) ([]*document, error) {
	var root struct {
		Entries []struct {
			Key   string `xml:"key,attr"`
			Value string `xml:",chardata"`
		} `xml:"entry"`
	}
	if err := xml.Unmarshal(data, &root); err != nil {
		return nil, malformedXML(err)
	}
	d := newDocument(model.SourceFile, label, q)
	for _, e := range root.Entries {
		d.put(e.Key, e.Value)
	}
	return []*document{d}, q.err()
}
