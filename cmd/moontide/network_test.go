package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// Proxies come from the environment as for curl and Go.
func TestEnvironmentProxy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ env, url, want string }{
		{"", "http://gpu.example", ""},
		{"HTTP_PROXY=http://a:1", "http://gpu.example", "http://a:1"},
		{"HTTP_PROXY=a:1", "http://gpu.example", "http://a:1"},
		{"HTTP_PROXY=http://a:1", "https://gpu.example", ""},
		{"HTTPS_PROXY=http://a:1 http_proxy=http://b:1", "https://gpu.example", "http://a:1"},
		{"HTTP_PROXY=http://a:1 http_proxy=http://b:1", "http://gpu.example", "http://b:1"},
		{"ALL_PROXY=socks5://a:1", "https://gpu.example", "socks5://a:1"},
		{"all_proxy=http://a:1 HTTP_PROXY=http://b:1", "http://gpu.example", "http://b:1"},
		{"ALL_PROXY=http://a:1 NO_PROXY=x,.example", "http://gpu.example", ""},
		{"ALL_PROXY=http://a:1 no_proxy=10.0.0.0/8", "http://10.1.2.3:8000", ""},
		{"ALL_PROXY=http://a:1 NO_PROXY=*", "http://gpu.example", ""},
		{"ALL_PROXY=http://a:1", "http://localhost:8000", ""},
		{"ALL_PROXY=http://a:1", "http://127.0.0.1:8000", ""},
		{"ALL_PROXY=http://a:1", "https://[::1]:8000", ""},
	} {
		env := map[string]string{}
		for _, variable := range strings.Fields(tc.env) {
			name, value, _ := strings.Cut(variable, "=")
			env[name] = value
		}
		target, err := url.Parse(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		proxy, err := environmentProxy(func(name string) string { return env[name] })(target)
		got := ""
		if proxy != nil {
			got = proxy.String()
		}
		if got != tc.want || err != nil {
			t.Errorf("%s with %q: proxy %q, %v", tc.url, tc.env, got, err)
		}
	}
}

// A run through a proxy names it, and its folder has no credentials. Loopback addresses have
// a proxy only with the setting proxy.
func TestProxyOfARun(t *testing.T) {
	t.Parallel()
	direct, dir := newWitness(t, (*httptest.Server).Start), t.TempDir()
	var proxied atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host != "" && r.Header.Get("Proxy-Authorization") != "" {
			proxied.Add(1)
		}
		direct.answer(w, r)
	}))
	t.Cleanup(proxy.Close)
	write(t, dir, "t.jsonl", rowsOfSessions())
	credentials := strings.Replace(proxy.URL, "http://", "http://me:hush-hush@", 1)
	run := func(name, url, env string, args ...string) result {
		t.Helper()
		cmd := moontide(dir, append([]string{"replay", "t.jsonl", "--url", url, "--out", name, "--max-concurrency", "1"}, args...)...)
		cmd.Env = append(cmd.Env, "http_proxy="+env, "NO_PROXY=", "no_proxy=")
		return finish(t, cmd)
	}
	for _, tc := range []struct {
		name, url, env string
		args           []string
		proxied        bool
	}{
		{"environment", "http://gpu.example:8000", credentials, nil, true},
		{"flag", "http://gpu.example:8000", "", []string{"--set", "proxy=" + credentials}, true},
		{"loopback", direct.URL, credentials, nil, false},
		{"loopback-by-flag", direct.URL, "", []string{"--set", "proxy=" + credentials}, true},
		{"none", direct.URL, credentials, []string{"--set", "proxy=none"}, false},
	} {
		proxied.Store(0)
		r := run(tc.name, tc.url, tc.env, tc.args...)
		note := "go through the proxy http://***@" + strings.TrimPrefix(proxy.URL, "http://")
		if !r.measured() || (proxied.Load() > 0) != tc.proxied || strings.Contains(unwrapped(r.err), note) != tc.proxied {
			t.Errorf("%s: exit status %d, %d requests to the proxy\n%s", tc.name, r.status, proxied.Load(), r.err)
		}
		recorded := runOfFolder(t, filepath.Join(dir, tc.name))
		for _, text := range []string{r.out, r.err, recorded.Settings.Proxy, strings.Join(recorded.Command, " "), strings.Join(recorded.Notes, " ")} {
			if strings.Contains(text, "hush") {
				t.Errorf("%s: secret in %s", tc.name, text)
			}
		}
		if tc.proxied && !strings.Contains(strings.Join(recorded.Notes, " "), note) {
			t.Errorf("%s: notes %q", tc.name, recorded.Notes)
		}
	}
	if r := run("no-proxy", "http://gpu.example:8000", "", "--set", "proxy=none"); r.status != exitFailed || !strings.Contains(r.err, "gpu.example") {
		t.Errorf("without a proxy: exit status %d\n%s", r.status, r.err)
	}
}
