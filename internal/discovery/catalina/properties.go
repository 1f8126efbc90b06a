package catalina

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/magiconair/properties"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// systemProperties are the JVM's properties once CatalinaProperties has added
// those of catalina.properties. The file wins over -D: it is loaded later, with
// System.setProperty.
func (p *Process) systemProperties() (map[string]Property, error) {
	all := maps.Clone(p.Properties)
	if all == nil {
		all = map[string]Property{}
	}
	file := p.propertiesFile()
	data, err := p.read(file, maxProperties)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil // the one in catalina.jar sets nothing that is asked for here
	}
	if err != nil {
		return all, err
	}
	if bytes.Count(data, []byte("\n"))+bytes.Count(data, []byte("\r")) > maxLines {
		return all, fmt.Errorf("%q: %w (%d lines)", file, bounded.ErrTooLarge, maxLines)
	}
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	loaded, err := loader.LoadBytes(data)
	if err != nil {
		return all, fmt.Errorf("%q: %w", file, errProperties)
	}
	for name, text := range loaded.Map() {
		all[name] = Property{Text: text, Kind: model.SourceFile, Source: p.shortName(file)}
	}
	return all, nil
}

// propertiesFile is the file that -Dcatalina.config names, as a URL or since
// 9.0.120, 10.1.57 and 11.0.24 as a name below conf; else
// conf/catalina.properties.
func (p *Process) propertiesFile() string {
	config := p.property("catalina.config")
	if u, err := url.Parse(config); err == nil && u.Scheme == "file" {
		return u.Path
	}
	if config == "" || strings.Contains(config, "://") {
		config = "catalina.properties"
	}
	return p.inBase(path.Join("conf", config))
}

// errProperties is a file whose form is wrong; its text is not repeated.
var errProperties = errors.New("malformed properties")

// sources answers what ${name} stands for in server.xml: the classes of
// org.apache.tomcat.util.digester.PROPERTY_SOURCE in their order, then the
// system properties (Digester).
type sources struct {
	properties map[string]Property
	env        map[string]string
	useEnv     bool
	// custom are classes whose answers cannot be known from outside.
	custom []string
	// blind is set when a source in front of the system properties cannot be
	// asked: what any ${…} stands for is then not known.
	blind bool
	unread
	replaced int  // bytes that substitutions have made so far
	nested   bool // a replacement is searched for ${} again
	dashed   bool // ${name:-default}
}

func (p *Process) newSources(properties map[string]Property, v Version) *sources {
	s := &sources{
		properties: properties,
		env:        p.Env,
		nested:     v.has(nestedSubstitution()...),
		dashed:     v.has(substitutionDefaults()...),
	}
	if p.Partial {
		s.unread = unread{what: "the environment"}
	}
	for class := range strings.SplitSeq(properties["org.apache.tomcat.util.digester.PROPERTY_SOURCE"].Text, ",") {
		switch class = strings.TrimSpace(class); class {
		case "", "org.apache.tomcat.util.digester.SystemPropertySource":
		case "org.apache.tomcat.util.digester.EnvironmentPropertySource",
			"org.apache.tomcat.util.digester.Digester$EnvironmentPropertySource":
			s.useEnv = true
		default:
			s.custom = append(s.custom, class)
		}
	}
	s.blind = len(s.custom) > 0 || s.useEnv && s.env == nil
	s.replaceSystemProperties()
	return s
}

// replaceSystemProperties does what the property of that name asks for.
func (s *sources) replaceSystemProperties() {
	if !strings.EqualFold(s.properties["org.apache.tomcat.util.digester.REPLACE_SYSTEM_PROPERTIES"].Text, "true") || !s.useEnv {
		return
	}
	outer := &sources{env: s.env, useEnv: true, nested: s.nested, dashed: s.dashed}
	for _, name := range slices.Sorted(maps.Keys(s.properties)) {
		property := s.properties[name]
		if text, via := outer.replace(property.Text); len(via) > 0 {
			s.properties[name] = Property{Text: text, Kind: via[0].Kind, Source: via[0].Source + " by " + property.Source}
		}
	}
}

func (s *sources) get(name string) (Property, bool) {
	if s.useEnv {
		if text, ok := s.env[name]; ok {
			return Property{Text: text, Kind: model.SourceEnv, Source: "env " + name}, true
		}
	}
	property, ok := s.properties[name]
	return property, ok
}
