package configdata

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/classpath"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/launch"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/version"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Files is what was found of an application's config files.
type Files struct {
	Docs     []*properties.Document // the highest precedence first, inactive ones left out
	Profiles []string               // the active ones in their order, or the default ones
	Missing  []model.Unavailable
}

// Find finds the config files the way that version of Spring Boot does. existing are
// the documents of all other sources, the highest precedence first; env is the
// environment's among them.
func Find(p *launch.Process, c *classpath.ClassPath, v version.Number, existing []*properties.Document, env *properties.Document) Files {
	im := newImporter(p, c, env)
	if !v.Known() || v.AtLeast(2, 4) {
		cd := &configData{existing: existing, im: im, legacy: v.Known() && !v.AtLeast(3), escapes: Escapes(v)}
		docs, profiles := cd.run()
		if v.AtLeast(3) || !useLegacy(slices.Concat(existing, docs)) {
			return Files{docs, profiles, im.missing}
		}
		im = newImporter(p, c, env)
	}
	im.oneDocument = !v.AtLeast(2, 4)
	lf := &legacyFiles{im: im, existing: existing, resolver: properties.NewResolver(existing, Escapes(v), im.secret.used), wildcard: v.AtLeast(2, 3)}
	docs, profiles := lf.run()
	return Files{docs, profiles, im.missing}
}

// useLegacy says that the application asks for the processing of Spring Boot
// 2.3 (UseLegacyConfigProcessingException, 2.4 to 2.7).
func useLegacy(docs []*properties.Document) bool {
	f, ok := properties.Lookup(docs, "spring.config.use-legacy-processing")
	return ok && f.Text == "true"
}

// Escapes says that a backslash keeps a placeholder from being replaced, which
// came with Spring Framework 6.2.
func Escapes(v version.Number) bool { return !v.Known() || v.AtLeast(3, 4) }
