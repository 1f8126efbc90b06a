package springboot

import "strings"

// parseManifest returns the main attributes of a META-INF/MANIFEST.MF: the
// lines up to the first empty one, where a line that begins with a space
// continues the one before (JAR File Specification). Names are lower-cased.
func parseManifest(text string) map[string]string {
	attrs := map[string]string{}
	last := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		if line[0] == ' ' {
			if last != "" {
				attrs[last] += line[1:]
			}
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		last = strings.ToLower(strings.TrimSpace(name))
		attrs[last] = strings.TrimPrefix(value, " ")
	}
	return attrs
}
