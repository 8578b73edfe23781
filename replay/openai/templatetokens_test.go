package openai

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"moontide/replay/prompt"
	"moontide/trace"
)

// counts is a server that counts prompt tokens by a function.
func counts(count func(n int) int) func(*peer) {
	return listing(listed("m"), func(p *peer, r *http.Request, body string) {
		if n := count(countIn(body)); n >= 0 {
			p.say(recounted(streamed+inChunk(complete)+lastChunk, n))
		} else {
			p.say(answerOf("400 Bad Request", "text/plain", "too long"))
		}
	})
}

func plus(template int) func(int) int { return func(n int) int { return n + template } }

// Probe distinguishes a chat template, which adds the same number of tokens to any
// prompt, from words that are not one token each.
func TestProbeLearnsHowPromptsAreCounted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		servers  []func(int) int
		template trace.Opt[int]
		note     string // "" for none
		refused  string // what is said where the count has to be exact
	}{
		"as meant":       {[]func(int) int{plus(0)}, trace.Some(0), "", ""},
		"a template":     {[]func(int) int{plus(9)}, trace.Some(9), "adds 9 tokens to each prompt", ""},
		"equal ones":     {[]func(int) int{plus(9), plus(9)}, trace.Some(9), "adds 9 tokens", ""},
		"a factor":       {[]func(int) int{func(n int) int { return n * 5 / 4 }}, trace.Opt[int]{}, "PROMPTS DO NOT HAVE THE LENGTHS OF THE TRACE: the endpoint counts 10 tokens for a prompt of 8 and 330 for one of 264, 1.25 per token", "1.25 per token"},
		"one in a few":   {[]func(int) int{func(n int) int { return n + n/200 }}, trace.Opt[int]{}, "265 for one of 264", "265 for one"},
		"too few":        {[]func(int) int{plus(-3)}, trace.Opt[int]{}, "5 tokens for a prompt of 8", "5 tokens for"},
		"one count only": {[]func(int) int{func(int) int { return 7 }}, trace.Opt[int]{}, "0.00 per token", "0.00 per token"},
		"different ones": {[]func(int) int{plus(9), plus(4)}, trace.Opt[int]{}, "add different numbers of tokens to each prompt: 9, but http://", "9, but http://"},
		"too long": {[]func(int) int{func(n int) int {
			if n > 100 {
				return -1
			}
			return n
		}}, trace.Opt[int]{}, "a probe of 264 tokens failed, so it is unknown how prompts are counted: HTTP status 400: too long", "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var urls []string
			for _, count := range tc.servers {
				urls = append(urls, serve(t, counts(count)).url)
			}
			for _, exact := range []bool{false, true} {
				for _, cfg := range []Config{{Endpoint: Chat}, {Prompt: Words}, {Prompt: Tokens}} {
					c := client(t, "", func(to *Config) {
						to.URLs, to.ExactISL, to.Endpoint, to.Prompt = urls, exact, cfg.Endpoint, cfg.Prompt
					})
					notes, err := c.Probe(context.Background())
					if exact && tc.refused != "" {
						if err == nil || !strings.Contains(err.Error(), tc.refused) || !strings.Contains(err.Error(), "cannot be made to have exactly the length") {
							t.Errorf("%+v: error %v, want %q", cfg, err, tc.refused)
						}
						continue
					}
					said := strings.Join(notes, "\n")
					if err != nil || c.TemplateTokens() != tc.template || !strings.Contains(said, tc.note) || (said == "") != (tc.note == "") || len(notes) > len(urls) {
						t.Errorf("%+v: template %+v, notes %q, error %v", cfg, c.TemplateTokens(), notes, err)
					}
				}
			}
		})
	}
}

// With ExactISL the endpoint counts the lengths of the trace, if prompts are long
// enough. Rows with text of their own are sent as they are.
func TestExactISL(t *testing.T) {
	t.Parallel()
	exact := func(cfg *Config) { cfg.Endpoint, cfg.ExactISL = Chat, true }
	c := client(t, serve(t, counts(plus(9))).url, exact)
	if _, err := c.Probe(context.Background()); err != nil {
		t.Fatal(err)
	}
	long := string(prompt.Source{}.Prompt(trace.Request{InputLength: 600, HashIDs: []uint64{1, 2}}, 0).AppendWords(nil))
	for isl, want := range map[int]int{600: 600, 10: 10, 9: 10, 1: 10, 0: 9} {
		o := prepare(t, c, trace.Request{InputLength: isl, OutputLength: 1, HashIDs: []uint64{1, 2}})
		if !strings.Contains(long, between(t, string(o.body), `"content":"`, `"}]`)) {
			t.Errorf("the prompt of %d tokens is not the beginning of the longer one", isl)
		}
		if got := o.Send(context.Background()).Counts.Input; got != trace.Some(want) {
			t.Errorf("%+v tokens are counted of %d, want %d", got, isl, want)
		}
	}
	own := prepare(t, c, extra(`{"text_input":"a b c"}`))
	if !strings.Contains(string(own.body), `"content":"a b c"`) {
		t.Errorf("a row's own text became %s", own.body)
	}

	none := client(t, serve(t, endpoint(listed("m"), streamed+inChunk(tide+finish+theEnd)+lastChunk)).url, exact)
	if _, err := none.Probe(context.Background()); err == nil || !strings.Contains(err.Error(), "does not report prompt tokens") {
		t.Errorf("without usage: error %v", err)
	}
}

func between(t *testing.T, text, before, behind string) string {
	t.Helper()
	_, text, ok := strings.Cut(text, before)
	text, _, ended := strings.Cut(text, behind)
	if !ok || !ended {
		t.Fatalf("no %s", before)
	}
	return text
}
