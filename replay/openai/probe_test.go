package openai

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
)

// endpoint is a server of models whose answers to completions are as given,
// the last for all that follow.
func endpoint(models string, completions ...string) func(*peer) {
	return func(p *peer) {
		for {
			r, body := p.request()
			switch {
			case r == nil:
				return
			case r.Method == http.MethodGet && r.URL.Path == "/v1/models":
				p.say(models)
			case strings.Contains(completions[0], "ignore_eos") && !strings.Contains(body, "ignore_eos"):
				p.say(completions[len(completions)-1])
			default:
				p.say(completions[0])
			}
		}
	}
}

func listed(ids ...string) string {
	for i, id := range ids {
		ids[i] = `{"id":"` + id + `","object":"model"}`
	}
	return answer("200 OK", "application/json", `{"object":"list","data":[`+strings.Join(ids, ",")+`]}`)
}

func TestProbe(t *testing.T) {
	t.Parallel()
	whole := streamed + inChunk(complete) + lastChunk
	missing := answer("404 Not Found", "application/json", `{"detail":"Not Found"}`)
	refused := answer("400 Bad Request", "application/json", `{"error":{"message":"extra fields not permitted: ignore_eos"}}`)
	page := answer("200 OK", "text/html", "<!doctype html>")
	for name, tc := range map[string]struct {
		model  string
		script func(*peer)
		serves string // the model that requests name in the end
		note   string
		err    string
	}{
		"one model":             {"", endpoint(listed("a"), whole), "a", "", ""},
		"two models":            {"", endpoint(listed("a", "b"), whole), "", "", "serves 2 models: name one of a, b"},
		"two models, one named": {"b", endpoint(listed("a", "b"), whole), "b", "", ""},
		"no models":             {"", endpoint(listed(), whole), "", "", "not a list of models"},
		"no models, named":      {"b", endpoint(listed(), whole), "b", "does not list its models", ""},
		"no list":               {"", endpoint(missing, whole), "", "", "for its models: HTTP status 404: Not Found"},
		"no list, named":        {"b", endpoint(missing, whole), "b", "does not list its models: HTTP status 404: Not Found", ""},
		"refuses ignore_eos":    {"", endpoint(listed("a"), refused, whole), "a", "refuses ignore_eos", ""},
		"refuses everything":    {"", endpoint(listed("a"), refused), "", "", "ignore_eos"},
		"no usage":              {"", endpoint(listed("a"), streamed+inChunk(tide+finish+theEnd)+lastChunk), "a", "reports no usage", ""},
		"no text in the token":  {"", endpoint(listed("a"), streamed+inChunk(finish+tokens+theEnd)+lastChunk), "a", "", ""},
		"no such model":         {"b", endpoint(listed("a"), answer("404 Not Found", "application/json", `{"error":{"message":"no model b"}}`)), "", "", "HTTP status 404: no model b"},
		"not streaming":         {"", endpoint(listed("a"), answer("200 OK", "application/json", `{"choices":[]}`)), "", "", `content type is "application/json"`},
		"a page":                {"", endpoint(page, page), "", "", "not a list of models: <!doctype html>"},
		"a page, named":         {"b", endpoint(page, page), "", "", `content type is "text/html"`},
		"not HTTP":              {"", says("220 mail.example\r\n"), "", "", "not an HTTP answer"},
		"hangs up":              {"", says(), "", "", "broke before an answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tc.script)
			c := client(t, s.url, func(cfg *Config) { cfg.Model = tc.model })
			notes, err := c.Probe(context.Background())
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), s.url) {
					t.Errorf("error %v, want one with %q", err, tc.err)
				}
				return
			}
			if err != nil || c.Model() != tc.serves {
				t.Fatalf("model %q, error %v", c.Model(), err)
			}
			said := strings.Join(notes, "\n")
			if !strings.Contains(said, tc.note) || tc.note == "" && said != "" {
				t.Errorf("notes %q, want %q", said, tc.note)
			}
			if ignores := tc.note != "refuses ignore_eos"; c.IgnoresEOS() != ignores {
				t.Errorf("ignore_eos is sent: %v", !ignores)
			}
			body := string(prepare(t, c, row).body)
			if !strings.HasPrefix(body, `{"model":"`+tc.serves+`",`) || strings.Contains(body, "ignore_eos") != c.IgnoresEOS() {
				t.Errorf("body %s", body)
			}
		})
	}
}

func TestProbeSendsNothingOfTheTrace(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{Endpoint: Chat}, {Prompt: Words}, {Prompt: Tokens}} {
		bodies := make(chan string, 1)
		s := serve(t, func(p *peer) {
			if r, body := p.request(); r.Method == http.MethodGet {
				p.say(listed("a"))
			} else {
				bodies <- body
				p.say(streamed + inChunk(complete) + lastChunk)
			}
		})
		c := client(t, s.url, func(to *Config) { to.Endpoint, to.Prompt = cfg.Endpoint, cfg.Prompt })
		before := c.PromptDigest()
		if _, err := c.Probe(context.Background()); err != nil {
			t.Fatal(err)
		}
		var sent struct {
			Model     string `json:"model"`
			MaxTokens int    `json:"max_tokens"`
		}
		if body := <-bodies; json.UnmarshalFromString(body, &sent) != nil || sent.Model != "m" || sent.MaxTokens != 1 {
			t.Errorf("%+v probes with %s", cfg, body)
		}
		if c.PromptDigest() != before {
			t.Error("the probe counts as a prompt")
		}
	}
}

func TestProbeUnreachable(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	for _, model := range []string{"", "m"} {
		c := client(t, "http://"+ln.Addr().String(), func(cfg *Config) { cfg.Model = model })
		if _, err := c.Probe(context.Background()); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("error %v", err)
		}
	}
}

func TestProbeTimesOut(t *testing.T) {
	t.Parallel()
	c := client(t, serve(t, once((*peer).hold)).url, soon)
	if _, err := c.Probe(context.Background()); err == nil || !strings.Contains(err.Error(), "no complete answer within 50ms") {
		t.Errorf("error %v", err)
	}
}

// A probe that was called off says so, and the client still works.
func TestProbeCanceled(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"", "m"} {
		ctx, cancel := context.WithCancel(context.Background())
		s := serve(t, once(func(p *peer) { cancel(); p.hold() }), wellBehaved)
		c := client(t, s.url, func(cfg *Config) { cfg.Model = model })
		if _, err := c.Probe(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		wantOK(t, send(t, c), 2)
	}
}
