package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moontide/replay/prompt"
	"moontide/trace"
)

func extra(text string) trace.Request {
	return trace.Request{InputLength: 2, OutputLength: 5, Extra: []byte(text)}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	const rest = `,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true}`
	var source prompt.Source
	p := source.Prompt(extra(""), 0)
	ids, words := string(p.AppendJSONTokens(nil)), string(p.AppendWords(nil))
	for name, tc := range map[string]struct {
		endpoint, form, model string
		row                   trace.Request
		want                  string
	}{
		"token ids":            {Completions, Tokens, "m", extra(""), `{"model":"m","prompt":` + ids + `,"max_tokens":5,"min_tokens":5` + rest},
		"words":                {Completions, Words, "m", extra(""), `{"model":"m","prompt":"` + words + `","max_tokens":5,"min_tokens":5` + rest},
		"chat":                 {Chat, Words, "m", extra(""), `{"model":"m","messages":[{"role":"user","content":"` + words + `"}],"max_tokens":5,"min_tokens":5` + rest},
		"messages":             {Chat, Words, "m", extra(`{"messages": [ {"role":"user","content":"h\u00e9"} ]}`), `{"model":"m","messages":[ {"role":"user","content":"h\u00e9"} ],"max_tokens":5,"min_tokens":5` + rest},
		"text":                 {Completions, Tokens, "m", extra(`{"text_input": "h\u00e9 \"<x>\"\n"}`), `{"model":"m","prompt":"h\u00e9 \"<x>\"\n","max_tokens":5,"min_tokens":5` + rest},
		"text in chat":         {Chat, Words, "m", extra(`{"text_input":"hé"}`), `{"model":"m","messages":[{"role":"user","content":"hé"}],"max_tokens":5,"min_tokens":5` + rest},
		"both":                 {Completions, Tokens, "m", extra(`{"messages":[],"text_input":"a"}`), `{"model":"m","prompt":"a","max_tokens":5,"min_tokens":5` + rest},
		"text that is none":    {Completions, Tokens, "m", extra(`{"text_input":7}`), `{"model":"m","prompt":` + ids + `,"max_tokens":5,"min_tokens":5` + rest},
		"no output":            {Completions, Words, "m", trace.Request{InputLength: 2}, `{"model":"m","prompt":"` + words + `","max_tokens":1,"min_tokens":1` + rest},
		"no input":             {Completions, Tokens, "m", trace.Request{OutputLength: 5}, `{"model":"m","prompt":[],"max_tokens":5,"min_tokens":5` + rest},
		"model in a quotation": {Completions, Tokens, `a"b\c/漢<é>`, extra(""), `{"model":"a\"b\\c/漢<é>","prompt":` + ids + `,"max_tokens":5,"min_tokens":5` + rest},
	} {
		c := client(t, "http://localhost", func(cfg *Config) { cfg.Endpoint, cfg.Prompt, cfg.Model = tc.endpoint, tc.form, tc.model })
		for _, ignore := range []bool{true, false} {
			c.caps.ignoreEOS, c.caps.minTokens = ignore, ignore
			c.setLayout()
			want := tc.want
			if !ignore {
				want = strings.Replace(want, `,"ignore_eos":true`, "", 1)
				want = strings.NewReplacer(`,"min_tokens":5`, "", `,"min_tokens":1`, "").Replace(want)
			}
			made := prepare(t, c, tc.row)
			if string(made.body) != want {
				t.Errorf("%s: body\n%s, want\n%s", name, made.body, want)
			}
			var body struct{ Model string }
			if err := json.Unmarshal(made.body, &body); err != nil || body.Model != tc.model {
				t.Errorf("%s: model %q, %v", name, body.Model, err)
			}
			if made.timeout != time.Hour {
				t.Errorf("%s: expected within %v", name, made.timeout)
			}
		}
	}
}

// Members of the extra body, sampling and the choice to stop at an end are sent once,
// with the other members.
func TestMembers(t *testing.T) {
	t.Parallel()
	some, none := trace.Some[float64], trace.Opt[float64]{}
	for _, tc := range []struct {
		extra, want       string
		temperature, topP trace.Opt[float64]
		stopAtEOS         bool
	}{
		{`{}`, `,"ignore_eos":true}`, none, none, false},
		{`{ "top_p" : 0.50, "x": { "b":1, "a":[ ] }, "min_tokens":5 }`, `,"ignore_eos":true,"min_tokens":5,"top_p":0.50,"x":{ "b":1, "a":[ ] }}`, none, none, false},
		{`{"ignore_eos":false}`, `,"ignore_eos":false}`, none, none, false},
		{`{"a\"b":"\u00e9é"}`, `,"ignore_eos":true,"a\"b":"\u00e9é"}`, none, none, false},
		{"", `,"ignore_eos":true,"temperature":0}`, some(0), none, false},
		{"", `,"ignore_eos":true,"temperature":0.7,"top_p":0.95}`, some(0.7), some(0.95), false},
		{`{"a":1,"z":2}`, `,"ignore_eos":true,"a":1,"top_p":1,"z":2}`, none, some(1), false},
		{"", `}`, none, none, true},
	} {
		c := client(t, "http://localhost", func(cfg *Config) {
			cfg.ExtraBody, cfg.Temperature, cfg.TopP, cfg.StopAtEOS = tc.extra, tc.temperature, tc.topP, tc.stopAtEOS
		})
		body := string(prepare(t, c, row).body)
		if !strings.HasSuffix(body, `"include_usage":true}`+tc.want) || !json.Valid([]byte(body)) || strings.Count(body, "min_tokens") > 1 || tc.stopAtEOS && (strings.Contains(body, "min_tokens") || c.IgnoresEOS() || c.MinTokens()) {
			t.Errorf("%s: body %s, want it to end in %s", tc.extra, body, tc.want)
		}
		if want := `{"model":"m","stream":true,"stream_options":{"include_usage":true}` + tc.want; c.Members() != want {
			t.Errorf("members %s, want %s", c.Members(), want)
		}
	}
}

func TestMessagesNeedChat(t *testing.T) {
	t.Parallel()
	c := client(t, "http://localhost")
	if _, err := c.Prepare(extra(`{"messages":[{"role":"user","content":"secret"}]}`), 0); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

func TestPromptDigest(t *testing.T) {
	t.Parallel()
	rows := make([]trace.Request, 50)
	for i := range rows {
		rows[i] = trace.Request{InputLength: 40 + i, HashIDs: []uint64{uint64(i % 7)}, OutputLength: i}
	}
	digest := func(source prompt.Source, order func(i int) int, rows []trace.Request) string {
		c := client(t, "http://localhost", func(cfg *Config) { cfg.Source = source })
		for i := range rows {
			if _, err := c.Prepare(rows[order(i)], order(i)); err != nil {
				t.Fatal(err)
			}
		}
		return c.PromptDigest()
	}
	forward := func(i int) int { return i }
	want := digest(prompt.Source{}, forward, rows)
	if got := digest(prompt.Source{}, func(i int) int { return len(rows) - 1 - i }, rows); got != want {
		t.Errorf("backwards the digest is %s, not %s", got, want)
	}
	longer := slices.Clone(rows)
	longer[20].InputLength++
	seen := map[string]bool{want: true}
	for name, got := range map[string]string{
		"another seed": digest(prompt.Source{Seed: 1}, forward, rows), "one row fewer": digest(prompt.Source{}, forward, rows[1:]),
		"rows in exchanged places": digest(prompt.Source{}, forward, append(slices.Clone(rows[1:]), rows[0])),
		"one token more":           digest(prompt.Source{}, forward, longer), "nothing": client(t, "http://localhost").PromptDigest(),
	} {
		if seen[got] || len(got) != 64 {
			t.Errorf("%s has the digest %s, as others have", name, got)
		}
		seen[got] = true
	}
}

// OnToken is called for each token chunk of a row, and for nothing else: not for
// probes or warm-up requests.
func TestOnToken(t *testing.T) {
	t.Parallel()
	told := map[int][]string{}
	word := func(text string) string {
		return fmt.Sprintf(`data: {"choices":[{"index":0,"text":"%s"}]}`, text) + "\n\n"
	}
	c := client(t, serve(t, always(func(p *peer, _ *http.Request, _ string) {
		p.say(streamed, inChunk(word("a")+word("")), inChunk(": ping\n\n"+word("b")), inChunk(finish+tokens+theEnd)+lastChunk)
	})).url, func(cfg *Config) {
		cfg.OnToken = func(row int, data []byte) { told[row] = append(told[row], string(data)) }
	})
	if o, _, _ := c.probe(context.Background(), c.servers[0], 3); o.Error != "" {
		t.Fatal(o.Error)
	}
	warm, err := c.Warmup().Prepare(row, 7)
	if err != nil {
		t.Fatal(err)
	}
	wantOK(t, warm.Send(context.Background()), 2)
	if len(told) > 0 {
		t.Errorf("called for a probe or a warm-up request: %v", told)
	}
	for _, n := range []int{7, 0} {
		call, err := c.Prepare(row, n)
		if err != nil {
			t.Fatal(err)
		}
		wantOK(t, call.Send(context.Background()), 2)
	}
	want := []string{`{"choices":[{"index":0,"text":"a"}]}`, `{"choices":[{"index":0,"text":"b"}]}`}
	if len(told) != 2 || !slices.Equal(told[7], want) || !slices.Equal(told[0], want) {
		t.Errorf("called with %v", told)
	}
}

// A warm-up request has the row's lengths but other text. A request that is prepared
// again is the same. Neither changes PromptDigest.
func TestWarmupAndAgain(t *testing.T) {
	for _, endpoint := range []string{Completions, Chat} {
		c := client(t, nobody, of(endpoint))
		row := trace.Request{InputLength: 1030, OutputLength: 9, HashIDs: []uint64{1, 2, 3}}
		own := row
		own.Extra = []byte(`{"messages": [{"role": "user", "content": "hush"}], "text_input": "hush"}`)
		bodies := map[string]int{}
		first := prepare(t, c, row).body
		digest := c.PromptDigest()
		for i := range 5 {
			for _, r := range []trace.Request{row, own} {
				warm, err := c.Warmup().Prepare(r, i)
				if err != nil {
					t.Fatal(err)
				}
				body := warm.(*call).body
				bodies[string(body)]++
				start := bytes.Index(first, []byte(`"m"`))
				if bytes.Contains(body, []byte("hush")) || bytes.Equal(body[:start+100], first[:start+100]) || !bytes.Contains(body, []byte(`"max_tokens":9`)) {
					t.Errorf("%s: warm-up %.200s", endpoint, body)
				}
			}
		}
		if len(bodies) != 5 || c.PromptDigest() != digest { // a warm-up is none of what is measured
			t.Errorf("%s: %d different bodies", endpoint, len(bodies))
		}
		// A row without ids has a text of its own, as a warm-up has.
		bare, err := c.Warmup().Prepare(row, 0)
		if own := prepare(t, c, trace.Request{InputLength: 1030, OutputLength: 9}).body; err != nil || bytes.Equal(bare.(*call).body, own) {
			t.Errorf("%s: a warm-up is what a row without ids says", endpoint)
		}
		digest = c.PromptDigest()
		again, err := c.PrepareAgain(row, 0)
		if err != nil || !bytes.Equal(again.(*call).body, first) {
			t.Errorf("%s: again: %v", endpoint, err)
		}
		if c.PromptDigest() != digest {
			t.Errorf("%s: the digest changed", endpoint)
		}
	}
}

// The turns of a session carry its name, in a form that every server accepts.
func TestSessionHeader(t *testing.T) {
	t.Parallel()
	got := make(chan []string, 1)
	script := always(func(p *peer, r *http.Request, _ string) {
		got <- r.Header.Values("X-Session-ID")
		p.say(streamed + inChunk(complete) + lastChunk)
	})
	c := client(t, serve(t, script).url)
	sent := func(c *Client, session string) string {
		r := row
		r.SessionID = session
		wantOK(t, prepare(t, c, r).Send(context.Background()), 2)
		return strings.Join(<-got, "|")
	}
	for session, want := range map[string]string{
		"":                       "",
		"chat-7":                 "chat-7",
		strings.Repeat("s", 128): strings.Repeat("s", 128),
	} {
		if name := sent(c, session); name != want {
			t.Errorf("session %q is named %q", session, name)
		}
	}
	seen := map[string]string{}
	for _, session := range []string{"a\r\nX-Evil: 1", "a\nb", "a b", "é", "\x7f", strings.Repeat("s", 129), strings.Repeat("s", 1<<20)} {
		name := sent(c, session)
		if len(name) < 2 || len(name) > 17 || name[0] != 'x' || seen[name] != "" || sent(c, session) != name {
			t.Errorf("session %.20q is named %q, like %.20q", session, name, seen[name])
		}
		seen[name] = session
	}
	// The user's own header takes precedence.
	c = client(t, c.servers[0].base.String(), func(cfg *Config) { cfg.Headers = []Header{{"x-session-id", "mine"}} })
	if name := sent(c, "chat-7"); name != "mine" {
		t.Errorf("named %q", name)
	}
	// Another header, or none, is the user's choice.
	for header, want := range map[string]string{"X-Affinity": "chat-7", NoSessionHeader: ""} {
		c = client(t, c.servers[0].base.String(), func(cfg *Config) { cfg.SessionHeader = header })
		head := string(prepare(t, c, trace.Request{InputLength: 3, SessionID: "chat-7"}).head)
		if has := strings.Contains(head, "X-Affinity: chat-7\r\n"); has != (want != "") || strings.Contains(head, "X-Session-I") || strings.Contains(head, "None") {
			t.Errorf("session header %s: %s", header, head)
		}
	}
}

// Rows are distributed by their numbers, or all turns of a session go to the same
// server.
func TestBalance(t *testing.T) {
	t.Parallel()
	urls := []string{"http://a", "http://b/x/v1", "http://c:1"}
	for _, balance := range []string{RoundRobin, BySession} {
		c := client(t, "", func(cfg *Config) { cfg.URLs, cfg.Balance = urls, balance })
		if got := c.Target(); got != "http://a/v1/completions http://b/x/v1/completions http://c:1/v1/completions" {
			t.Error(got)
		}
		taken := map[string]int{}
		for i := range 300 {
			if got, want := c.server(trace.Request{}, i), c.servers[i%3]; got != want {
				t.Errorf("%s: row %d goes to %s", balance, i, got.base)
			}
			turn := trace.Request{SessionID: fmt.Sprint("s", i)}
			one, two := c.server(turn, i), c.server(turn, i+1)
			if same := one == two; same != (balance == BySession) {
				t.Errorf("%s: two turns go to %s and %s", balance, one.base, two.base)
			}
			taken[one.base.host]++
		}
		for host, n := range taken {
			if n < 70 {
				t.Errorf("%s: %s has %d of 300 sessions", balance, host, n)
			}
		}
	}
}

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
		if err != nil || MixText(mix) != want || mix == nil && model != text || mix != nil && model != "" {
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
