package openai

import (
	"context"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"moontide/replay"
	"moontide/replay/prompt"
	"moontide/trace"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	const good = "http://localhost:8000"
	for name, tc := range map[string]struct {
		cfg  Config
		want string
	}{
		"no url":              {Config{}, "url is not http://host"},
		"no scheme":           {Config{URL: "localhost:8000"}, `url is not http://host or https://host: "localhost:8000": write "http://localhost:8000"`},
		"another scheme":      {Config{URL: "ftp://localhost"}, "url is not http://host"},
		"no host":             {Config{URL: "http:///v1"}, "url is not http://host"},
		"a port alone":        {Config{URL: "http://:8000"}, "url is not http://host"},
		"a bad escape":        {Config{URL: "http://localhost/%zz"}, "url does not parse"},
		"a line end":          {Config{URL: "http://localhost/\r\nA: b"}, "url does not parse"},
		"credentials":         {Config{URL: "http://user:hush@localhost"}, "url has credentials"},
		"credentials, broken": {Config{URL: "http://user:hush@localhost/%zz"}, "url has credentials"},
		"no scheme but them":  {Config{URL: "user:hush@localhost"}, "url has credentials"},
		"a query, unescaped":  {Config{URL: "http://localhost?api_key=hush hush"}, "url has a query that does not parse"},
		"a query, bad escape": {Config{URL: "http://localhost?api_key=hush%zz"}, "url has a query that does not parse"},
		"an address":          {Config{URL: "127.0.0.1:8000"}, `write "http://127.0.0.1:8000"`},
		"a query, broken":     {Config{URL: "localhost?api_key=hush"}, "url is not http://host"},
		"a fragment":          {Config{URL: "http://localhost#x"}, "url has a fragment"},
		"fragment, query":     {Config{URL: "http://localhost?k=hush#x"}, "url has a fragment"},
		"a unix socket":       {Config{URL: "unix:///run/vllm.sock"}, "Unix socket"},
		"two endpoints":       {Config{URL: good + "/v1/chat/completions?k=hush", Endpoint: Completions}, "the URL names the chat endpoint (/v1/chat/completions), but the endpoint is set to completions"},
		"two urls' endpoints": {Config{URLs: []string{good + "/v1/chat/completions", good + "/completions"}}, "the URLs name two endpoints, chat and completions"},
		"endpoint":            {Config{URL: good, Endpoint: "embeddings"}, `endpoint is not completions, chat, responses, messages or generate: "embeddings"`},
		"prompt":              {Config{URL: good, Prompt: "text"}, `prompt form is not tokens or words: "text"`},
		"tokens in chat":      {Config{URL: good, Endpoint: Chat, Prompt: Tokens}, "chat endpoint takes text"},
		"timeout":             {Config{URL: good, Timeout: -time.Second}, "timeout is negative: -1s"},
		"idle timeout":        {Config{URL: good, IdleTimeout: -time.Second}, "idle timeout is negative: -1s"},
		"temperature":         {Config{URL: good, Temperature: trace.Some(-0.1)}, "temperature is not from 0 to 2: -0.1"},
		"temperature, NaN":    {Config{URL: good, Temperature: trace.Some(math.NaN())}, "temperature is not from 0 to 2: NaN"},
		"top-p":               {Config{URL: good, TopP: trace.Some(0.0)}, "top-p is not above 0 and at most 1: 0"},
		"twice":               {Config{URL: good, TopP: trace.Some(0.5), ExtraBody: `{"top_p":"hush"}`}, `extra body has "top_p", which has an option of its own: remove one of them`},
		"passages as ids":     {Config{URL: good, Prompt: Tokens, Source: prompt.Source{Text: new(prompt.Corpus)}}, "cannot be sent as token ids"},
		"model":               {Config{URL: good, Model: "a\xff"}, "model name is not UTF-8"},
		"source":              {Config{URL: good, Source: prompt.Source{BlockSize: -1}}, "block size"},
		"key with a line end": {Config{URL: good, APIKey: "hush\nA: b"}, "API key contains a line end"},
		"header without name": {Config{URL: good, Headers: []Header{{"", "hush"}}}, "header 1 is not a name and a value"},
		"header in the name":  {Config{URL: good, Headers: []Header{{"A", "b"}, {"Authorization hush", ""}}}, "header 2 is not a name"},
		"name with a colon":   {Config{URL: good, Headers: []Header{{"A:hush", "b"}}}, "header 1 is not a name"},
		"name with line end":  {Config{URL: good, Headers: []Header{{"A\r\nhush", "b"}}}, "header 1 is not a name"},
		"value with CR":       {Config{URL: good, Headers: []Header{{"A", "hush\rB: c"}}}, "header 1 is not a name"},
		"value with LF":       {Config{URL: good, Headers: []Header{{"A", "hush\nB: c"}}}, "header 1 is not a name"},
		"value with NUL":      {Config{URL: good, Headers: []Header{{"A", "hush\x00"}}}, "header 1 is not a name"},
		"a second url":        {Config{URLs: []string{good, "localhost"}}, "url is not http://host"},
		"balance":             {Config{URL: good, Balance: "luck"}, `balance is not round-robin or session: "luck"`},
		"connections":         {Config{URL: good, Connections: "few"}, `connections are not pooled or fresh: "few"`},
		"extra body":          {Config{URL: good, ExtraBody: `["hush"]`}, "extra body is not a JSON object"},
		"extra body, null":    {Config{URL: good, ExtraBody: `null`}, "extra body is not a JSON object"},
		"extra body, broken":  {Config{URL: good, ExtraBody: `{"hush":`}, "extra body is not a JSON object"},
		"extra body, ours":    {Config{URL: good, ExtraBody: `{"stream":false}`}, `extra body has "stream", which the replay sets`},
		"framing":             {Config{URL: good, Headers: []Header{{"Content-length", "0"}}}, "header 1 is about the connection"},
		"encoding":            {Config{URL: good, Headers: []Header{{"Accept-Encoding", "gzip"}}}, "header 1 asks for an encoded answer"},
	} {
		_, err := New(tc.cfg)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: error %v, want one with %q and no secret", name, err, tc.want)
		}
	}
}

func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	type request struct {
		*http.Request
		body string
	}
	got := make(chan request, 1)
	s := serve(t, func(p *peer) {
		r, body := p.request()
		got <- request{r, body}
		p.say(streamed + inChunk(complete) + lastChunk)
	})
	c := client(t, s.url+"/a%20b", func(cfg *Config) {
		cfg.APIKey = "key-of-mine"
		cfg.Headers = []Header{{"x-team", "tide"}, {"Host", "models.example"}, {"User-Agent", "tester"}}
	})
	made := prepare(t, c, row)
	body := string(made.body)
	wantOK(t, made.Send(context.Background()), 2)
	r := <-got
	if r.Method != "POST" || r.RequestURI != "/a%20b/v1/completions" || r.Host != "models.example" || r.body != body {
		t.Errorf("%s %s of %s: %s", r.Method, r.RequestURI, r.Host, r.body)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer key-of-mine", "X-Team": "tide", "User-Agent": "tester",
		"Content-Type": "application/json", "Accept": "text/event-stream",
	} {
		if values := r.Header.Values(name); len(values) != 1 || values[0] != want {
			t.Errorf("%s: %q, want %q", name, values, want)
		}
	}
}

// Servers quote requests in their errors: keys, headers and values of the query are
// masked, whatever the answer.
func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	const query, said = "sk-1%2F23", `sk-key-123 and sk-key-123-of-header and tenant"7 and sk-1/23 and sk-1%2F23`
	quoted := strings.ReplaceAll(said, `"`, `\"`)
	for name, text := range map[string]string{
		"status":        answerOf("401 No", "application/json", `{"error":{"message":"`+quoted+`"}}`),
		"plain":         answerOf("401 No", "text/plain", said),
		"cut short":     answerOf("401 No", "text/plain", strings.Repeat("x", 190)+said), // in the middle of one
		"in the stream": streamed + inChunk(`data: {"error":{"message":"`+quoted+`"}}`+"\n\n"),
		"garbage":       streamed + inChunk("data: "+said+"\n\n"),
		"content type":  "HTTP/1.1 200 OK\r\nContent-Type: sk-key-123\r\n\r\n",
		"header":        "HTTP/1.1 200 OK\r\nsk-key-123 and more\r\n\r\n",
		"not HTTP":      said + "\r\n\r\n",
		"redirect":      "HTTP/1.1 308 Moved\r\nLocation: http://u:sk-hush@new/v1/completions?key=sk-1%2F23#sk-hush\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keep := func(cfg *Config) {
				cfg.APIKey = "sk-key-123"
				cfg.Headers = []Header{{"X-Key", "Bearer sk-key-123-of-header"}, {"X-Tenant", `tenant"7`}, {"X-Short", "1"}}
			}
			url := serve(t, says(text)).url + "?key=" + query
			c := client(t, url, keep)
			o := send(t, c)
			_, probed := c.Probe(context.Background())
			_, asked := client(t, url, keep, func(cfg *Config) { cfg.Model = "" }).Probe(context.Background())
			if o.Class == replay.OK || probed == nil || asked == nil {
				t.Fatalf("class %q, probes %v, %v", o.Class, probed, asked)
			}
			for _, said := range []string{o.Error, probed.Error(), asked.Error(), c.Target()} {
				if strings.Contains(said, "sk-") || strings.Contains(said, "of-header") || strings.Contains(said, "tenant") {
					t.Errorf("secret in %q", said)
				}
			}
			if name == "status" && o.Error != "HTTP status 401: *** and *** and *** and *** and ***" || !strings.Contains(c.Target(), "?key=***") {
				t.Errorf("error %q of %s", o.Error, c.Target())
			}
		})
	}
}

// A redirect is refused with its target, without secrets, and with what to set.
func TestRedirects(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"https://u:hush@new/gw/v1/completions?k=hush#hush": "redirected to https://new/gw/v1/completions; redirects are not followed: set the URL to https://new/gw",
		"https://new/gw/v1/models?k=hush":                  "redirected to https://new/gw/v1/models; redirects are not followed: set the URL to https://new/gw",
		"/llm/v1/completions?k=hush":                       "redirected to /llm/v1/completions on the same server; redirects are not followed: change the path of requests to it",
		"https://new/login":                                "redirected to https://new/login; redirects are not followed: set the URL to the API's address",
		"//u:hush@new/login":                               "redirected to //new/login; redirects are not followed: set the URL to the API's address",
		"http://u:hush@%zz":                                "redirected to another address; redirects are not followed: set the URL to the API's address",
		"https:u:hush@new/v1/completions":                  "redirected to another address; redirects are not followed: set the URL to the API's address",
	} {
		if got := errorText(308, nil, location); got != "HTTP status 308: "+want {
			t.Errorf("%s: %s", location, got)
		}
	}
}

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
