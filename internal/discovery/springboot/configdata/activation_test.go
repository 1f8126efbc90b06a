package configdata

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot/properties"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func TestMatchProfiles(t *testing.T) {
	active := []string{"prod", "eu", "my profile"}
	for expr, want := range map[string]bool{
		"prod": true, "dev": false, "!dev": true, "!prod": false, "!!prod": true,
		"prod & eu": true, "prod&dev": false, "dev | eu": true, "(dev | prod) & eu": true,
		"!(dev | prod)": false, "prod & !dev": true, "my profile": true, "((prod))": true, "a|b|prod": true,
	} {
		got, err := matchProfiles(expr, active)
		require.NoError(t, err, expr)
		require.Equal(t, want, got, expr)
	}
	for _, expr := range []string{"", "()", "prod &", "& prod", "(prod", "prod)", "a & b | c", "prod !dev", "!", "a ( b )", strings.Repeat("(", 100) + "a"} {
		_, err := matchProfiles(expr, active)
		require.Error(t, err, expr)
	}
}

func TestActivation(t *testing.T) {
	known := &activationContext{cloud: "KUBERNETES", known: true, profiles: []string{"prod"}}
	unknown := &activationContext{cloud: "NONE"}
	tests := map[string]struct {
		a    activation
		ctx  *activationContext
		want bool
	}{
		"before anything is known":     {activation{profiles: []string{"prod"}}, nil, false},
		"before the profiles":          {activation{profiles: []string{"!dev"}}, unknown, false},
		"one of several":               {activation{profiles: []string{"x", "prod"}}, known, true},
		"a malformed one does not":     {activation{profiles: []string{"(prod"}}, known, false},
		"platform, any case":           {activation{cloud: "kubernetes"}, known, true},
		"platform before the profiles": {activation{cloud: "none"}, unknown, true},
		"both":                         {activation{profiles: []string{"dev"}, cloud: "kubernetes"}, known, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, tt.a.active(tt.ctx)) })
	}
	require.Equal(t, "profile a or b, on heroku", (&activation{profiles: []string{"a", "b"}, cloud: "heroku"}).String())
}

// The variables are those of Spring Boot's CloudPlatform.
func TestCloudPlatform(t *testing.T) {
	for want, names := range map[string][]string{
		"CLOUD_FOUNDRY": {"VCAP_APPLICATION"}, "HEROKU": {"DYNO"}, "SAP": {"HC_LANDSCAPE"}, "NOMAD": {"NOMAD_ALLOC_ID"},
		"KUBERNETES":        {"ORDERS_SERVICE_HOST", "ORDERS_SERVICE_PORT"},
		"AZURE_APP_SERVICE": {"WEBSITE_SITE_NAME", "WEBSITE_INSTANCE_ID", "WEBSITE_RESOURCE_GROUP", "WEBSITE_SKU"},
		"NONE":              {"ORDERS_SERVICE_HOST", "WEBSITE_SITE_NAME"},
	} {
		env := &properties.Document{Names: names, Values: map[string]string{}}
		for _, name := range names {
			env.Values[name] = "x"
		}
		require.Equal(t, want, cloudPlatform("", env))
		require.Equal(t, "HEROKU", cloudPlatform("heroku", env), "it is forced")
	}
	require.Equal(t, "CLOUD_FOUNDRY", cloudPlatform("", &properties.Document{Values: map[string]string{"VCAP_SERVICES": "{}"}}))
}

func FuzzMatchProfiles(f *testing.F) {
	m := mutate.Into(f)
	m.Add("(a & !b) | c")
	m.Add("(a")
	m.Fuzz(func(t *testing.T, expr string) {
		ok, err := matchProfiles(expr, []string{"a", "b"})
		if err != nil {
			require.False(t, ok)
			return
		}
		not, err := matchProfiles("!("+expr+")", []string{"a", "b"})
		if err == nil {
			require.NotEqual(t, ok, not)
		}
	})
}
