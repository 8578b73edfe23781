package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"

	"moontide/trace"
)

// A text is a mix only if all of several parts are names with numbers.
func TestParseModels(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a=0.7,b=0.3":          "a=0.7,b=0.3",
		"a=7, b=3":             "a=7,b=3",
		"x=1=0.5,/models/b=2":  "x=1=0.5,/models/b=2",
		"a":                    "",
		"a=1":                  "",
		"a,b":                  "",
		"a=0.7,b":              "",
		"/m/a=b,c=d":           "",
		"/models/lr=1e-4,beta": "",
		"=1,=2":                "",
		"":                     "",
	} {
		model, mix, err := ParseModels(text)
		if err != nil || mixText(mix) != want || mix == nil && model != text || mix != nil && model != "" {
			t.Errorf("%q is %q and the mix %v, %v", text, model, mix, err)
		}
	}
	for text, part := range map[string]string{
		"a=1,a=2": "twice", "a=0,b=1": "above 0", "a=-1,b=1": "above 0", "a=nan,b=1": "above 0", "a=1e999,b=1": "finite", " =1,b=1": "empty",
	} {
		if _, _, err := ParseModels(text); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The draws of a seed are the same on every machine and in every version, go by the
// weights, and do not
// depend on those that select sessions of a trace.
func TestDrawsAreStable(t *testing.T) {
	t.Parallel()
	mix := []Share{{"a", 0.5}, {"b", 0.5}}
	drawn := func(seed uint64) (text string) {
		for i := range 16 {
			text += draw(mix, seed, fmt.Sprint("s", i), 0) + draw(mix, seed, "", i)
		}
		return text
	}
	if got := drawn(7); got != stableDraws {
		t.Errorf("drawn %s", got)
	}
	if drawn(7) == drawn(8) {
		t.Error("another seed draws the same")
	}
	const n = 20_000
	uneven, counts := []Share{{"a", 6}, {"b", 3}, {"c", 1}}, map[string]int{}
	for i := range n {
		counts[draw(uneven, 42, fmt.Sprint("session-", i), i)]++
	}
	for _, s := range uneven {
		p := s.Weight / 10
		if off := math.Abs(float64(counts[s.Model]) - n*p); off > 4*math.Sqrt(n*p*(1-p)) {
			t.Errorf("%d of %d sessions are for %s, with a share of %g", counts[s.Model], n, s.Model, p)
		}
	}
	clear(counts)
	for i := range 1000 {
		if session := fmt.Sprint(i); trace.Draw(1, "", session, 0) < 0.5 {
			counts[draw(mix, 1, session, 0)]++
		}
	}
	if min(counts["a"], counts["b"]) < 200 {
		t.Errorf("sampled sessions: %v", counts)
	}
}

const stableDraws = "aabbaabbaaabaaabbbaabaabaabbbbbb"

// decoded is the decoded body of a request.
func decoded(t *testing.T, c *call) map[string]any {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(c.body, &body); err != nil {
		t.Fatalf("%v: %s", err, c.body)
	}
	return body
}

// A session keeps one model, whatever the rows and other servers of the run, and the
// digest of prompts does not depend on models.
func TestSessionKeepsItsModel(t *testing.T) {
	t.Parallel()
	mixed := client(t, "http://localhost", func(cfg *Config) {
		cfg.Model, cfg.Models = "", []Share{{"first", 1}, {`a longer "name"`, 1}}
	})
	plain := client(t, "http://localhost")
	seen := map[string]bool{}
	for i := range 64 {
		r := row
		r.SessionID = fmt.Sprint(i % 16)
		for _, c := range []*Client{mixed, plain} {
			if _, err := c.Prepare(r, i); err != nil {
				t.Fatal(err)
			}
		}
		made, err := mixed.prepare(r, i)
		if err != nil {
			t.Fatal(err)
		}
		again, err := mixed.PrepareAgain(r, 1000+i)
		if err != nil {
			t.Fatal(err)
		}
		model := decoded(t, made)["model"].(string)
		if model != made.model || decoded(t, again.(*call))["model"] != model {
			t.Errorf("turns of session %s ask for %q, %q and %q", r.SessionID, model, made.model, again.(*call).model)
		}
		seen[model] = true
	}
	if len(seen) != 2 {
		t.Errorf("models are %v", seen)
	}
	if mixed.PromptDigest() != plain.PromptDigest() {
		t.Error("the digest of prompts depends on the models")
	}
	if got := mixed.Model(); got != `first=1,a longer "name"=1` {
		t.Errorf("the model is %q", got)
	}
}

// Rows choose the model if that is asked for, and only those that have one; others
// have the model of the run.
func TestModelOfRows(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{true, false} {
		for _, endpoint := range []string{Completions, Chat, Responses, Messages} {
			c := client(t, "http://localhost", func(cfg *Config) {
				cfg.Endpoint, cfg.ModelFromTrace = endpoint, asked
			})
			for text, want := range map[string]string{
				`{"model":"big"}`:                  "big",
				`{"model":""}`:                     "m",
				`{"model":null}`:                   "m",
				`{"model":7}`:                      "m",
				`{"other":1,"model":"a \"b\" \n"}`: "a \"b\" \n",
			} {
				if !asked {
					want = "m"
				}
				if got := decoded(t, prepare(t, c, extra(text)))["model"]; got != want {
					t.Errorf("%s, asked %t: model %v", text, asked, got)
				}
			}
		}
	}
}

// The probe tries the models that the server does not list, and names the first that
// it refuses, with the line of the trace.
func TestProbeOfModels(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]int{}
	script := always(func(p *peer, r *http.Request, body string) {
		if r.Method == http.MethodGet {
			p.say(listed("a", "b"))
			return
		}
		var sent struct{ Model string }
		json.Unmarshal([]byte(body), &sent)
		mu.Lock()
		asked[sent.Model]++
		mu.Unlock()
		if sent.Model == "typo" {
			p.say(answerOf("404 Not Found", "application/json", message("The model `typo` does not exist.")))
			return
		}
		usual(p, r, body)
	})
	url := serve(t, script).url
	for _, tc := range []struct {
		edit   func(*Config)
		model  string // of the client
		tried  string
		failed string
	}{
		{func(cfg *Config) { cfg.Models = []Share{{"a", 1}, {"b", 3}} }, "a=1,b=3", "map[a:2]", ""},
		{func(cfg *Config) { cfg.Models = []Share{{"a", 1}, {"lazy", 1}} }, "a=1,lazy=1", "map[a:2 lazy:1]", ""},
		{func(cfg *Config) { cfg.ModelFromTrace, cfg.TraceModels = true, []NamedModel{{"b", 1}, {"a", 4}} }, "", "map[b:2]", ""},
		{func(cfg *Config) { cfg.ModelFromTrace, cfg.TraceModels = true, []NamedModel{{"b", 1}, {"typo", 17}} }, "", "map[b:2 typo:1]", `model "typo" in line 17 of the trace`},
		{func(cfg *Config) { cfg.ModelFromTrace, cfg.TraceModels = true, []NamedModel{{"b", 1}, {"", 2}} }, "", "map[]", "choose one of a, b"},
		{func(cfg *Config) {
			cfg.Model, cfg.ModelFromTrace, cfg.TraceModels = "a", true, []NamedModel{{"b", 1}, {"", 2}}
		}, "a", "map[a:2]", ""},
	} {
		mu.Lock()
		clear(asked)
		mu.Unlock()
		c := client(t, url, func(cfg *Config) { cfg.Model = ""; tc.edit(cfg) })
		_, err := c.Probe(context.Background())
		if (err != nil) != (tc.failed != "") || err != nil && !strings.Contains(err.Error(), tc.failed) || err == nil && c.Model() != tc.model {
			t.Errorf("%v: model %q, %v", tc, c.Model(), err)
		}
		mu.Lock()
		got := fmt.Sprint(asked)
		mu.Unlock()
		if got != tc.tried {
			t.Errorf("%v: %s were asked for, want %s", tc, got, tc.tried)
		}
		var refused *RefusedError
		if tc.tried == "map[b:2 typo:1]" && (!errors.As(err, &refused) || refused.Remedy != UseOtherModel) {
			t.Errorf("remedy of %v", err)
		}
	}
}
