package springboot

import "strings"

// cloudPlatform is the platform that Spring Boot detects (CloudPlatform), from
// variables of the environment, or the one that spring.main.cloud-platform forces.
func cloudPlatform(forced string, env *document) string {
	if forced != "" {
		return strings.ToUpper(forced)
	}
	has := func(names ...string) bool {
		for _, n := range names {
			if _, ok := env.values[n]; !ok {
				return false
			}
		}
		return true
	}
	switch {
	case has("VCAP_APPLICATION"), has("VCAP_SERVICES"):
		return "CLOUD_FOUNDRY"
	case has("DYNO"):
		return "HEROKU"
	case has("HC_LANDSCAPE"):
		return "SAP"
	case has("NOMAD_ALLOC_ID"):
		return "NOMAD"
	case onKubernetes(env):
		return "KUBERNETES"
	case has("WEBSITE_SITE_NAME", "WEBSITE_INSTANCE_ID", "WEBSITE_RESOURCE_GROUP", "WEBSITE_SKU"):
		return "AZURE_APP_SERVICE"
	}
	return "NONE"
}

// onKubernetes looks for the variables that a pod gets for each service.
func onKubernetes(env *document) bool {
	for _, name := range env.names {
		if service, ok := strings.CutSuffix(name, "_SERVICE_HOST"); ok {
			if _, ok := env.values[service+"_SERVICE_PORT"]; ok {
				return true
			}
		}
	}
	return false
}
