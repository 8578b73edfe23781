package openai

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// A URL names a server or an endpoint, with any prefix and version; its query goes
// with every request.
func TestURLs(t *testing.T) {
	t.Parallel()
	const azure = "https://x.openai.azure.com/openai/deployments/gpt%204/chat/completions"
	for _, tc := range []struct{ url, endpoint, request, models string }{
		{"http://h", Completions, "/v1/completions", "/v1/models"},
		{"HTTPS://h:1/openai/v1", Completions, "/openai/v1/completions", "/openai/v1/models"},
		{"http://[::1]:8000/", Completions, "/v1/completions", "/v1/models"},
		{"http://h/a%2Fb%20c/v1", Completions, "/a%2Fb%20c/v1/completions", "/a%2Fb%20c/v1/models"},
		{"http://h/apiv1", Completions, "/apiv1/v1/completions", "/apiv1/v1/models"},
		{"http://h/llm", Completions, "/llm/v1/completions", "/llm/v1/models"},
		{"http://h/llm/v1//", Completions, "/llm/v1/completions", "/llm/v1/models"},
		{"http://h/api/v4", Completions, "/api/v4/completions", "/api/v4/models"},
		{"http://h/v1beta2/openai/v1beta", Completions, "/v1beta2/openai/v1beta/completions", "/v1beta2/openai/v1beta/models"},
		{"http://h/v1/chat/completions", Chat, "/v1/chat/completions", "/v1/models"},
		{"http://h/v1/chat/completions/", Chat, "/v1/chat/completions", "/v1/models"},
		{"http://h/llm/v1/completions", Completions, "/llm/v1/completions", "/llm/v1/models"},
		{"http://h/v4/chat/completions", Chat, "/v4/chat/completions", "/v4/models"},
		{"http://h/beta/completions", Completions, "/beta/completions", "/beta/models"},
		{"http://h/chat/completions?a=b", Chat, "/chat/completions?a=b", "/models?a=b"},
		{"http://h?a=b&c=d%20e", Completions, "/v1/completions?a=b&c=d%20e", "/v1/models?a=b&c=d%20e"},
		{azure + "?api-version=2024-10-21", Chat, "/openai/deployments/gpt%204/chat/completions?api-version=2024-10-21", ""},
		{"https://h/openai/deployments/m?a=b", Completions, "/openai/deployments/m/completions?a=b", ""},
	} {
		c := client(t, tc.url)
		s := c.servers[0]
		if got := string(s.head.RequestURI()); got != tc.request || c.Endpoint() != tc.endpoint {
			t.Errorf("%s: requests go to %s, %s; want %s, %s", tc.url, c.Endpoint(), got, tc.endpoint, tc.request)
		}
		if got := s.base.target(s.base.modelsPath()); tc.models != "" && got != tc.models {
			t.Errorf("%s: models are at %s, want %s", tc.url, got, tc.models)
		}
	}
}

// A deployment is its model, and lists none.
func TestDeployment(t *testing.T) {
	t.Parallel()
	got := make(chan string, 9)
	s := serve(t, always(func(p *peer, r *http.Request, body string) {
		got <- r.Method + " " + r.RequestURI + " " + r.Header.Get("Api-Key") + r.Header.Get("Authorization") + body
		usual(p, r, body)
	}))
	for _, model := range []string{"", "other"} {
		c := client(t, s.url+"/openai/deployments/gpt%204/chat/completions?api-version=2024-10-21", func(cfg *Config) {
			cfg.Model, cfg.APIKey, cfg.Server = model, "key-of-mine", "azure"
		})
		want := model
		if model == "" {
			want = "gpt 4"
		}
		if _, err := c.Probe(context.Background()); err != nil || c.Model() != want {
			t.Errorf("model %q, %v", c.Model(), err)
		}
		for range 2 {
			if said := <-got; !strings.HasPrefix(said, `POST /openai/deployments/gpt%204/chat/completions?api-version=2024-10-21 key-of-mine{"model":"`+want+`"`) {
				t.Errorf("request %s", said)
			}
		}
	}
}

func TestMaskURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"http://h/v1":             "http://h/v1",
		"http://h/v1?":            "http://h/v1?",
		"h?a=hush":                "h?a=" + mask("hush"),
		"http://h?a=hush&b=&hush": "http://h?a=" + mask("hush") + "&b=" + mask("") + "&" + mask("hush"),
		"http://u:hush@h:1/a#u":   "http://" + mask("u:hush") + "@h:1/a#" + mask("u"),
		"u:hush@h":                mask("u:hush") + "@h",
		"old=http://h?a=b=hush":   "old=http://h?a=" + mask("b=hush"),
	} {
		if got := MaskURL(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if mask("a") == mask("b") {
		t.Error("other values have the same mask")
	}
}
