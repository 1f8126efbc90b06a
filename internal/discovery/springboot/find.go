package springboot

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// configFiles is what was found of an application's config files.
type configFiles struct {
	docs     []*document // the highest precedence first, inactive ones left out
	profiles []string    // the active ones in their order, or the default ones
	missing  []model.Unavailable
}

// findFiles finds the config files the way that version of Spring Boot does. existing are
// the documents of all other sources, the highest precedence first; env is the
// environment's among them.
func findFiles(p *Process, c *classPath, v version, existing []*document, env *document) configFiles {
	im := newImporter(p, c, env)
	if !v.known() || v.atLeast(2, 4) {
		cd := &configData{existing: existing, im: im, legacy: v.known() && !v.atLeast(3), escapes: escapes(v)}
		docs, profiles := cd.run()
		if v.atLeast(3) || !useLegacy(slices.Concat(existing, docs)) {
			return configFiles{docs, profiles, im.missing}
		}
		im = newImporter(p, c, env)
	}
	im.oneDocument = !v.atLeast(2, 4)
	lf := &legacyFiles{im: im, existing: existing, resolver: newResolver(existing, escapes(v), im.secret.used), wildcard: v.atLeast(2, 3)}
	docs, profiles := lf.run()
	return configFiles{docs, profiles, im.missing}
}

// useLegacy says that the application asks for the processing of Spring Boot
// 2.3 (UseLegacyConfigProcessingException, 2.4 to 2.7).
func useLegacy(docs []*document) bool {
	f, ok := lookup(docs, "spring.config.use-legacy-processing")
	return ok && f.text == "true"
}

// escapes says that a backslash keeps a placeholder from being replaced, which
// came with Spring Framework 6.2.
func escapes(v version) bool { return !v.known() || v.atLeast(3, 4) }
