package catalina_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
)

const plainServer = `<Server><Service><Connector port="8080" maxThreads="42"/></Service></Server>`

func utf16Text(text string, order binary.ByteOrder, mark string) string {
	out := []byte(mark)
	for _, unit := range utf16.Encode([]rune(text)) {
		out = append(out, 0, 0)
		order.PutUint16(out[len(out)-2:], unit)
	}
	return string(out)
}

// TestDocuments: documents that Tomcat starts from.
func TestDocuments(t *testing.T) {
	declared := func(encoding string) string { return `<?xml version='1.0' encoding='` + encoding + `'?>` }
	tests := map[string]string{
		"plain":                    plainServer,
		"declaration":              declared("UTF-8") + plainServer,
		"byte order mark":          "\xef\xbb\xbf" + declared("utf-8") + plainServer,
		"latin 1":                  declared("ISO-8859-1") + "<!-- caf\xe9 -->" + plainServer,
		"windows":                  declared("windows-1252") + "<!-- \x80 -->" + plainServer,
		"UTF-16 big":               utf16Text(declared("UTF-16")+plainServer, binary.BigEndian, "\xfe\xff"),
		"UTF-16 little":            utf16Text(declared("UTF-16")+plainServer, binary.LittleEndian, "\xff\xfe"),
		"UTF-16 without a mark":    utf16Text(declared("UTF-16")+plainServer, binary.BigEndian, ""),
		"UTF-16 little, no mark":   utf16Text(declared("UTF-16")+plainServer, binary.LittleEndian, ""),
		"comments":                 "<!-- <Connector port='1'/> -->" + strings.Replace(plainServer, "<Connector", "<!-- c --><Connector", 1),
		"instruction":              "<?pi x?>" + plainServer,
		"carriage returns":         strings.ReplaceAll(plainServer, "><", ">\r\n<"),
		"character references":     strings.Replace(plainServer, "42", "&#52;&#x32;", 1),
		"entity":                   `<!DOCTYPE Server [ <!ENTITY n "42"> ]>` + strings.Replace(plainServer, "42", "&n;", 1),
		"entity, single quotes":    `<!DOCTYPE Server [ <!ENTITY n '42'> ]>` + strings.Replace(plainServer, "42", "&n;", 1),
		"text around":              strings.Replace(plainServer, "<Service>", "<Service>text <![CDATA[<Connector port='2'/>]]>", 1),
		"namespace":                strings.Replace(plainServer, "<Server>", `<Server xmlns="http://tomcat.apache.org/xml">`, 1),
		"parameter entity":         `<!DOCTYPE Server [ <!ENTITY % p "x"> ]>` + plainServer,
		"document type of a file":  `<!DOCTYPE Server SYSTEM "server.dtd">` + plainServer,
		"entity that nobody needs": `<!DOCTYPE Server [ <!ENTITY f SYSTEM "file:///etc/passwd"> ]>` + plainServer,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := load(t, "9.0.117", text)
			require.NoError(t, err)
			require.Len(t, s.Connectors, 1)
			require.Equal(t, 42, s.Connectors[0].MaxThreads.Value)
			require.Empty(t, s.Unavailable)
		})
	}
}

func TestIncludedEntities(t *testing.T) {
	for name, entity := range map[string]string{
		"file":    `SYSTEM "file:///etc/connectors.xml"`,
		"public":  `PUBLIC "-//x" "connectors.xml"`,
		"markup":  `"<Connector port='1'/>"`,
		"another": `"&other;"`,
	} {
		t.Run(name, func(t *testing.T) {
			s, err := load(t, "9.0.117", `<!DOCTYPE Server [ <!ENTITY more `+entity+`> ]>`+
				strings.Replace(plainServer, "<Service>", "<Service>&more;", 1))
			require.NoError(t, err)
			require.Len(t, s.Connectors, 1)
			require.Len(t, s.Unavailable, 1)
			require.Contains(t, s.Unavailable[0].What, "&more;")
		})
	}
}

// TestHostileDocuments: an error, soon, and no memory to speak of.
func TestHostileDocuments(t *testing.T) {
	laughs := `<!DOCTYPE Server [<!ENTITY a "ha">`
	for c := 'b'; c < 'z'; c++ {
		laughs += `<!ENTITY ` + string(c) + ` "` + strings.Repeat("&"+string(c-1)+";", 100) + `">`
	}
	long := strings.Repeat("x", 100<<10)
	tests := map[string]struct{ text, err string }{
		"empty":          {"", "no element"},
		"no xml":         {"port=8080", "no element"},
		"cut off":        {plainServer[:60], "malformed XML: line 1"},
		"wrong nesting":  {"<Server><Service></Server>", "malformed XML: line 1"},
		"another root":   {"<server/>", "<Server>"},
		"unknown entity": {"<Server>&nbsp;</Server>", "malformed XML: line 1"},
		"deep":           {strings.Repeat("<Server>", 1000), "nest too deep"},
		"large":          {plainServer + strings.Repeat(" ", 5<<20), "larger than"},
		"encoding":       {`<?xml version="1.0" encoding="EBCDIC-CP-US"?>` + plainServer, "encoding is not read"},
		"version":        {`<?xml version="1.1"?>` + plainServer, "malformed XML"},
		"binary":         {"\x00\x01\x02", "line 1"},
		"laughs":         {laughs + `]><Server>&y;</Server>`, ""},
		"quadratic":      {`<!DOCTYPE Server [<!ENTITY a "` + long + `">]><Server>` + strings.Repeat("&a;", 100_000) + `</Server>`, ""},
		"many entities":  {`<!DOCTYPE Server [` + strings.Repeat(`<!ENTITY a "b">`, 60_000) + `]><Server/>`, ""},
		"many doctypes":  {strings.Repeat(`<!DOCTYPE a [<!ENTITY a "b">]>`, 30_000) + `<Server/>`, ""},
		"many elements":  {`<Server>` + strings.Repeat(`<a/>`, 100_000) + `</Server>`, "larger than"},
		"attributes":     {`<Server ` + strings.Repeat(`a="" `, 100_000) + `/>`, "larger than"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := time.Now()
			_, err := load(t, "9.0.117", tt.text)
			require.Less(t, time.Since(before), 20*time.Second) // linear: some 0.1 s
			if tt.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.err)
			}
		})
	}
}
