package springboot

import "strings"

// parseManifest returns the main attributes of a META-INF/MANIFEST.MF: the
// lines up to the first empty one, where a line that begins with a space
// continues the one before (JAR File Specification). Names are lower-cased.
func parseManifest(text string) map[string]string {
	parts := map[string][]string{}
	last := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		if line[0] == ' ' {
			if last != "" {
				parts[last] = append(parts[last], line[1:])
			}
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		last = strings.ToLower(strings.TrimSpace(name))
		parts[last] = []string{strings.TrimPrefix(value, " ")}
	}
	attrs := make(map[string]string, len(parts))
	for name, value := range parts {
		attrs[name] = strings.Join(value, "")
	}
	return attrs
}
