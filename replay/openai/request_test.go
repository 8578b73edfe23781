package openai

import (
	"encoding/binary"
	stdjson "encoding/json"
	"fmt"
	"slices"
	"strings"
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
			if err := stdjson.Unmarshal(made.body, &body); err != nil || body.Model != tc.model {
				t.Errorf("%s: model %q, %v", name, body.Model, err)
			}
			if made.timeout != 20*time.Second {
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
		if !strings.HasSuffix(body, `"include_usage":true}`+tc.want) || !stdjson.Valid([]byte(body)) || strings.Count(body, "min_tokens") > 1 || tc.stopAtEOS && (strings.Contains(body, "min_tokens") || c.IgnoresEOS() || c.MinTokens()) {
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

func TestDigestCarries(t *testing.T) {
	t.Parallel()
	for sum, want := range map[[4]uint64][4]uint64{
		{0, 0, 0, 1}:                   {0, 0, 0, 2},
		{0, 0, ^uint64(0), ^uint64(0)}: {0, 1, 0, 0},
		{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}: {},
	} {
		var number []byte
		for _, word := range sum {
			number = binary.BigEndian.AppendUint64(number, word)
		}
		var d digest
		d.addHash(number)
		d.addHash([]byte{1})
		if got := d.String(); got != fmt.Sprintf("%016x%016x%016x%016x", want[0], want[1], want[2], want[3]) {
			t.Errorf("%x + 1 = %s, want %x", sum, got, want)
		}
	}
}
