package springboot

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

const postgres = "--spring.datasource.url=jdbc:postgresql://db/orders"

func TestBackendsOfArguments(t *testing.T) {
	tests := map[string]struct {
		boot string
		libs []string
		args []string
		want string // name, places, library, size, source
	}{
		"nothing":                   {args: []string{"--x=y"}},
		"HikariCP's default":        {libs: []string{"HikariCP"}, args: []string{postgres}, want: "orders [{db 5432}] HikariCP 10 default of HikariCP"},
		"both on the class path":    {libs: []string{"tomcat-jdbc", "HikariCP"}, args: []string{postgres}, want: "orders [{db 5432}] HikariCP 10 default of HikariCP"},
		"before Spring Boot 2.0":    {boot: "1.5.22.RELEASE", libs: []string{"tomcat-jdbc", "HikariCP"}, args: []string{postgres}, want: "orders [{db 5432}] tomcat-jdbc 100 default of tomcat-jdbc"},
		"HikariCP's size":           {libs: []string{"HikariCP"}, args: []string{postgres, "--spring.datasource.hikari.maximumPoolSize=13"}, want: "orders [{db 5432}] HikariCP 13 argument --spring.datasource.hikari.maximumPoolSize"},
		"the other pool's size":     {libs: []string{"HikariCP"}, args: []string{postgres, "--spring.datasource.tomcat.max-active=13"}, want: "orders [{db 5432}] HikariCP 10 default of HikariCP"},
		"tomcat-jdbc by its type":   {libs: []string{"HikariCP"}, args: []string{postgres, "--spring.datasource.type=org.apache.tomcat.jdbc.pool.DataSource", "--spring.datasource.tomcat.max-active=7"}, want: "orders [{db 5432}] tomcat-jdbc 7 argument --spring.datasource.tomcat.max-active"},
		"a type nobody knows":       {libs: []string{"HikariCP"}, args: []string{postgres, "--spring.datasource.type=a.B"}, want: "orders [{db 5432}]"},
		"no library in sight":       {args: []string{postgres}, want: "orders [{db 5432}]"},
		"a merged jar":              {args: []string{postgres, "--spring.datasource.hikari.maximum-pool-size=4"}, want: "orders [{db 5432}] HikariCP 4 argument --spring.datasource.hikari.maximum-pool-size"},
		"a size that is refused":    {libs: []string{"HikariCP"}, args: []string{postgres, "--spring.datasource.hikari.maximum-pool-size=0"}, want: "orders [{db 5432}]"},
		"a size beyond belief":      {libs: []string{"HikariCP"}, args: []string{postgres, "--spring.datasource.hikari.maximum-pool-size=2147483647"}, want: "orders [{db 5432}]"},
		"a URL of HikariCP's own":   {libs: []string{"HikariCP"}, args: []string{postgres, "--spring.datasource.hikari.jdbc-url=jdbc:mysql://other/shop"}, want: "shop [{other 3306}] HikariCP 10 default of HikariCP"},
		"a JNDI name":               {libs: []string{"HikariCP"}, args: []string{postgres, "--spring.datasource.jndi-name=java:x"}},
		"placeholders":              {args: []string{"--spring.datasource.url=jdbc:postgresql://${host:db}:${port}/orders", "--port=6432"}, want: "orders [{db 6432}]"},
		"a placeholder of nothing":  {args: []string{"--spring.datasource.url=jdbc:postgresql://${host}/orders"}},
		"R2DBC":                     {libs: []string{"r2dbc-pool"}, args: []string{"--spring.r2dbc.url=r2dbc:postgresql://db/orders", "--spring.r2dbc.pool.max-size=6"}, want: "orders [{db 5432}] r2dbc-pool 6 argument --spring.r2dbc.pool.max-size"},
		"R2DBC, a pool of the URL":  {libs: []string{"r2dbc-pool"}, args: []string{"--spring.r2dbc.url=r2dbc:pool:postgresql://db/orders"}, want: "orders [{db 5432}]"},
		"R2DBC without a pool":      {libs: []string{"r2dbc-pool"}, args: []string{"--spring.r2dbc.url=r2dbc:postgresql://db/orders", "--spring.r2dbc.pool.enabled=false"}, want: "orders [{db 5432}]"},
		"Redis":                     {args: []string{"--spring.data.redis.host=cache", "--spring.data.redis.port=6380"}, want: "redis [{cache 6380}]"},
		"Redis, an IPv6 address":    {args: []string{"--spring.data.redis.host=fd00::7"}, want: "redis [{fd00::7 6379}]"},
		"Redis, the URL first":      {args: []string{"--spring.data.redis.host=cache", "--spring.data.redis.url=redis://u:p@other"}, want: "redis [{other 6379}]"},
		"Redis by its older name":   {boot: "2.7.18", args: []string{"--spring.redis.host=cache"}, want: "redis [{cache 6379}]"},
		"Redis by Jedis":            {args: []string{"--spring.data.redis.host=cache", "--spring.data.redis.client-type=jedis", "--spring.data.redis.jedis.pool.max-active=6"}, want: "redis [{cache 6379}] Jedis 6 argument --spring.data.redis.jedis.pool.max-active"},
		"Jedis's default":           {libs: []string{"jedis"}, args: []string{"--spring.data.redis.url=redis://cache"}, want: "redis [{cache 6379}] Jedis 8 default of Jedis"},
		"Jedis beside Lettuce":      {libs: []string{"jedis", "lettuce-core"}, args: []string{"--spring.data.redis.host=cache"}, want: "redis [{cache 6379}]"},
		"Jedis without a pool":      {libs: []string{"jedis"}, args: []string{"--spring.data.redis.host=cache", "--spring.data.redis.jedis.pool.enabled=false"}, want: "redis [{cache 6379}]"},
		"Jedis without a bound":     {libs: []string{"jedis"}, args: []string{"--spring.data.redis.host=cache", "--spring.data.redis.jedis.pool.max-active=-1"}, want: "redis [{cache 6379}]"},
		"Jedis by its older name":   {boot: "2.7.18", libs: []string{"jedis"}, args: []string{"--spring.redis.host=cache", "--spring.redis.jedis.pool.max-active=5"}, want: "redis [{cache 6379}] Jedis 5 argument --spring.redis.jedis.pool.max-active"},
		"Jedis long ago":            {boot: "1.5.22.RELEASE", libs: []string{"jedis"}, args: []string{"--spring.redis.host=cache", "--spring.redis.pool.max-active=5"}, want: "redis [{cache 6379}]"},
		"a name that binds no more": {args: []string{"--spring.redis.host=cache"}},
		"a name that binds not yet": {boot: "2.7.18", args: []string{"--spring.data.redis.host=cache"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.boot == "" {
				tt.boot = "3.5.16"
			}
			e := environmentOf(tt.boot, "", tt.args...)
			e.libs = tt.libs
			list, _ := e.Backends()
			if tt.want == "" {
				require.Empty(t, list)
				return
			}
			require.Len(t, list, 1)
			got := fmt.Sprint(list[0].Name, " ", list[0].Hosts)
			if p := list[0].Pool; p != nil {
				got += fmt.Sprint(" ", p.Library, " ", p.Size.Value, " ", p.Size.Source)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// The environment beats a profile's file, which beats the application's: found
// where the connector's settings are found.
func TestBackendsHaveSources(t *testing.T) {
	c := binderCase{
		Files: map[string]string{
			"application.yml":      "spring:\n  datasource:\n    url: jdbc:postgresql://file/orders\n    hikari.maximum-pool-size: 3\n  data.redis.host: cache\n",
			"application-prod.yml": "spring.datasource.hikari.maximum-pool-size: 4\n",
		},
		Env:  map[string]string{"SPRING_DATASOURCE_URL": "jdbc:postgresql://app:s3cret@env:6432/orders?password=s3cret"},
		Args: []string{"--spring.profiles.active=prod"},
	}
	load := func() ([]Backend, []model.Unavailable) {
		e, err := Load(jarLayout(t, t.TempDir(), "3.5.16", c))
		require.NoError(t, err)
		return e.Backends()
	}
	list, missing := load()
	require.Empty(t, missing)
	require.Len(t, list, 2)
	require.Equal(t, Backend{
		Name: "orders", Hosts: []HostPort{{"env", 6432}},
		Pool: &model.Pool{Library: "HikariCP", Setting: hikariSizeName, Size: model.Setting[int]{
			Value: 4, Kind: model.SourceFile, Source: list[0].Pool.Size.Source,
		}},
	}, list[0])
	require.Contains(t, list[0].Pool.Size.Source, "application-prod.yml")
	require.NotContains(t, fmt.Sprint(list), "s3cret")
	require.Equal(t, Backend{Name: "redis", Hosts: []HostPort{{"cache", 6379}}}, list[1])

	c.Env["SPRING_DATASOURCE_HIKARI_MAXIMUMPOOLSIZE"] = "5"
	list, _ = load()
	require.Equal(t, 5, list[0].Pool.Size.Value)
	require.Equal(t, "env SPRING_DATASOURCE_HIKARI_MAXIMUMPOOLSIZE", list[0].Pool.Size.Source)

	c.Env["SPRING_DATASOURCE_HIKARI_MAXIMUMPOOLSIZE"] = "s3cret"
	list, missing = load()
	require.Nil(t, list[0].Pool)
	require.Equal(t, []string{hikariSizeName + " from env SPRING_DATASOURCE_HIKARI_MAXIMUMPOOLSIZE: not an integer"}, whats(missing))

	delete(c.Env, "SPRING_DATASOURCE_HIKARI_MAXIMUMPOOLSIZE")
	c.Files["config/application.yml"] = "malformed: ["
	list, _ = load()
	require.True(t, list[0].Pool.Size.Uncertain, "a file that could not be read may say otherwise")
}
