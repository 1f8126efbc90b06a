package springboot

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/classpath"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/configdata"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/version"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Value is a property's value and where it was found.
type Value struct {
	Text   string // placeholders resolved
	Kind   model.SourceKind
	Source string // "env SERVER_TOMCAT_ACCEPT_COUNT", "application.yml in app.jar, profile prod"
	float  bool   // a floating point number, not the text of one
}

// Environment is what Spring's Environment holds, where it can be known
// from outside.
type Environment struct {
	docs     []*properties.Document // the highest precedence first
	profiles []string
	boot     string
	tomcat   string
	server   string
	java     string
	libs     []string // the libraries' names without versions: "HikariCP"
	kind     classpath.Kind
	// unread are what could not be read and may say otherwise than a file or a
	// default does.
	unread []string
	// headless is set when the application's own jar could not be read: what
	// is not set elsewhere may be set in it, so that no default can be claimed.
	headless    bool
	code        classpath.CodeLimits
	unavailable []model.Unavailable
}

// CodeLimits is the application's own code that may set limits.
func (e *Environment) CodeLimits() classpath.CodeLimits { return e.code }

// ErrNotSpringBoot is a process that is no Spring Boot application.
var ErrNotSpringBoot = errors.New("not a Spring Boot application")

// Load works out the environment of a Spring Boot process. What could not be
// read or known is in Unavailable; ErrNotSpringBoot means that the process is
// none. A jar or an argument file that cannot be read might be anything: it gets
// the benefit of the doubt, with KindNone and no defaults.
func Load(p launch.Process) (*Environment, error) {
	l := launch.Parse(&p)
	c := classpath.New(&p, l)
	defer c.Close()
	kind, ok := c.Detect(&p, l)
	if !ok && len(c.Missing) == 0 && len(l.Missing) == 0 {
		return nil, fmt.Errorf("springboot: %w", ErrNotSpringBoot)
	}
	e := &Environment{kind: kind, headless: !ok}
	e.unavailable = slices.Concat(p.Missing, l.Missing, c.Missing)
	e.identify(&p, l, c)
	e.collect(&p, l, c)
	found, limits := classpath.Customisers(&p, c)
	e.unavailable, e.code = append(e.unavailable, found...), limits
	if c.Over {
		e.unavailable = append(e.unavailable, model.Unavailable{What: "some jars of the class path", Why: classpath.ErrJars.Error()})
	}
	return e, nil
}

// identify finds versions.
func (e *Environment) identify(p *launch.Process, l *launch.Command, c *classpath.ClassPath) {
	libs := c.Libraries()
	e.libs = slices.Collect(maps.Keys(libs))
	e.boot, e.tomcat = c.BootVersion(p, libs), c.TomcatVersion(p, libs)
	e.server = model.ServerTomcat().Name
	if e.tomcat == "" {
		e.server = c.WebServer(p, libs, len(l.Missing) == 0)
	}
	e.java = launch.JavaVersion(p)
	if e.boot == "" {
		e.unavailable = append(e.unavailable, model.Unavailable{
			What: "version of Spring Boot", Why: "neither a manifest nor a jar's name has it",
			How: "where the jar may not be read: run as the process's user, or as root",
		})
	}
	if _, ok := libs["spring-cloud-starter-bootstrap"]; ok {
		e.unavailable = append(e.unavailable, model.Unavailable{
			What: "settings of Spring Cloud's bootstrap context", Why: "they come from a server (bootstrap.yml)",
			How: "give the limits with --max-connections, --accept-count, --max-threads",
		})
	}
}

// collect orders the sources.
func (e *Environment) collect(p *launch.Process, l *launch.Command, c *classpath.ClassPath) {
	args, props, env := launch.Arguments(l.Args), launch.SystemProperties(p, l), launch.Variables(p)
	if !p.EnvKnown {
		e.unavailable = append(e.unavailable, model.Unavailable{
			What: "environment of the process", Why: "it could not be read: settings in it are not seen",
			How:     "run as the process's user and group, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
			Subject: model.SubjectEnvironment,
		})
	}
	for _, d := range []*properties.Document{args, props, env} {
		if d.Quota.Over {
			e.unavailable = append(e.unavailable, model.Unavailable{What: d.Label, Why: properties.ErrProperty.Error()})
		}
	}
	docs := []*properties.Document{args, props, env}
	json, err := launch.ApplicationJSON(docs)
	if err != nil {
		e.unavailable = append(e.unavailable, model.Unavailable{What: properties.ApplicationJSONLabel, Why: err.Error()})
	}
	if json != nil {
		docs = slices.Insert(docs, 1, json)
	}
	files := configdata.Find(p, c, version.Parse(e.boot), docs, env)
	e.docs, e.profiles = slices.Concat(docs, files.Docs), files.Profiles
	e.unavailable = append(e.unavailable, files.Missing...)
	for _, u := range files.Missing {
		e.unread = append(e.unread, u.What)
	}
}

// Get returns the property of that canonical name ("server.tomcat.max-connections"),
// in any spelling. An error is a value that Spring itself
// could not have resolved, or that cannot be known (ErrRandom).
func (e *Environment) Get(name string) (Value, bool, error) {
	f, ok := properties.Lookup(e.docs, name)
	if !ok {
		return Value{}, false, nil
	}
	v := Value{Kind: f.Doc.Kind, Source: f.Doc.Source(f.Name), float: f.Doc.Floats[f.Name]}
	text, err := properties.NewResolver(e.docs, configdata.Escapes(version.Parse(e.boot)), nil).Resolve(f.Text)
	if err != nil {
		return v, true, fmt.Errorf("%s from %s: %w", name, v.Source, err)
	}
	v.Text = text
	return v, true, nil
}

// Version returns the versions of Spring Boot and of the embedded Tomcat, each
// empty when it is unknown.
func (e *Environment) Version() (boot, tomcat string) { return e.boot, e.tomcat }

// Server is the embedded web server: tomcat, jetty, undertow, netty, other (also
// none), or "" when that is unknown.
func (e *Environment) Server() string { return e.server }

// Kind is how the application was started.
func (e *Environment) Kind() classpath.Kind { return e.kind }

// Unavailable names what could not be read or known.
func (e *Environment) Unavailable() []model.Unavailable { return slices.Clone(e.unavailable) }
