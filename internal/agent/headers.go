package agent

import "net/http"

// secured sets the headers that keep a browser from being used against the
// agent. What the web configuration sets stays.
func secured(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"X-Content-Type-Options":       "nosniff",
			"X-Frame-Options":              "deny",
			"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			if w.Header().Get(name) == "" {
				w.Header().Set(name, value)
			}
		}
		h.ServeHTTP(w, r)
	})
}
