package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"moontide/replay/prompt"
	"moontide/trace"
	"moontide/trace/jsonscan"
)

// listing is a server that lists models and answers other requests.
func listing(models string, answer func(p *peer, r *http.Request, body string)) func(*peer) {
	return always(func(p *peer, r *http.Request, body string) {
		if r.Method == http.MethodGet {
			p.say(models)
			return
		}
		answer(p, r, body)
	})
}

// usual answers with as many prompt tokens as the body has.
func usual(p *peer, _ *http.Request, body string) {
	p.say(recounted(streamed+inChunk(complete)+lastChunk, countIn(body)))
}

// endpoint is a server with a list of models. It answers completions with the given
// answers, the last one repeatedly.
func endpoint(models string, completions ...string) func(*peer) {
	return always(func(p *peer, r *http.Request, body string) {
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/v1/models":
			p.say(models)
		case strings.Contains(completions[0], "ignore_eos") && !strings.Contains(body, "ignore_eos"):
			p.say(recounted(completions[len(completions)-1], countIn(body)))
		default:
			p.say(recounted(completions[0], countIn(body)))
		}
	})
}

// countIn counts the token ids or words of a body's prompt.
func countIn(body string) int {
	var sent struct {
		Prompt   any
		Messages []struct{ Content string }
	}
	jsonscan.Strict.UnmarshalFromString(body, &sent)
	switch p := sent.Prompt.(type) {
	case []any:
		return len(p)
	case string:
		return len(strings.Fields(p))
	}
	return len(strings.Fields(sent.Messages[0].Content))
}

// recounted replaces the count of prompt tokens in an answer of one chunk.
func recounted(answer string, n int) string {
	framed, ok := strings.CutPrefix(answer, streamed)
	if !ok {
		return answer
	}
	_, framed, _ = strings.Cut(framed, "\r\n")
	events := strings.TrimSuffix(framed, "\r\n"+lastChunk)
	return streamed + inChunk(strings.Replace(events, `"prompt_tokens":3`, fmt.Sprintf(`"prompt_tokens":%d`, n), 1)) + lastChunk
}

func listed(ids ...string) string {
	for i, id := range ids {
		ids[i] = `{"id":"` + id + `","object":"model"}`
	}
	return answerOf("200 OK", "application/json", `{"object":"list","data":[`+strings.Join(ids, ",")+`]}`)
}

func TestProbe(t *testing.T) {
	t.Parallel()
	whole := streamed + inChunk(complete) + lastChunk
	missing := answerOf("404 Not Found", "application/json", `{"detail":"Not Found"}`)
	refused := answerOf("400 Bad Request", "application/json", `{"error":{"message":"extra fields not permitted: ignore_eos"}}`)
	page := answerOf("200 OK", "text/html", "<!doctype html>")
	for name, tc := range map[string]struct {
		model  string
		script func(*peer)
		serves string // the model that requests name in the end
		note   string
		err    string
	}{
		"one model":             {"", endpoint(listed("a"), whole), "a", "", ""},
		"another model":         {"b", endpoint(listed("a", "c"), whole), "b", "lists the model a, c, not b", ""},
		"two models":            {"", endpoint(listed("a", "b"), whole), "", "", "serves 2 models: choose one of a, b"},
		"two models, one named": {"b", endpoint(listed("a", "b"), whole), "b", "", ""},
		"no models":             {"", endpoint(listed(), whole), "", "", "the list is empty"},
		"no models, named":      {"b", endpoint(listed(), whole), "b", "does not list its models", ""},
		"no list":               {"", endpoint(missing, whole), "", "", "for its models, as none is set: HTTP status 404: Not Found"},
		"no list, named":        {"b", endpoint(missing, whole), "b", "does not list its models: HTTP status 404: Not Found", ""},
		"refuses ignore_eos":    {"", endpoint(listed("a"), refused, whole), "a", "refuses ignore_eos", ""},
		"refuses everything":    {"", endpoint(listed("a"), refused), "", "", "ignore_eos"},
		"no usage":              {"", endpoint(listed("a"), streamed+inChunk(tide+finish+theEnd)+lastChunk), "a", "reports no usage", ""},
		"no text in the token":  {"", endpoint(listed("a"), streamed+inChunk(finish+tokens+theEnd)+lastChunk), "a", "", ""},
		"no such model":         {"b", endpoint(listed("a"), answerOf("404 Not Found", "application/json", `{"error":{"message":"no model b"}}`)), "", "", "HTTP status 404: no model b"},
		"not streaming":         {"", endpoint(listed("a"), answerOf("200 OK", "application/json", `{"choices":[]}`)), "", "", `content type is "application/json"`},
		"a page":                {"", endpoint(page, page), "", "", "not a list of models: <!doctype html>"},
		"a page, named":         {"b", endpoint(page, page), "", "", `content type is "text/html"`},
		"not HTTP":              {"", says("220 mail.example\r\n"), "", "", "not an HTTP response"},
		"hangs up":              {"", says(), "", "", "closed before a response"},
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
			body := string(prepare(t, c, row).body)
			for member, sent := range map[string]bool{"ignore_eos": c.IgnoresEOS(), "min_tokens": c.MinTokens()} {
				if refused := strings.Contains(tc.note, "refuses "+member); sent == refused || strings.Contains(body, member) != sent {
					t.Errorf("%s is sent: %t, refused: %t, body %s", member, sent, refused, body)
				}
			}
			if !strings.HasPrefix(body, `{"model":"`+tc.serves+`",`) {
				t.Errorf("body %s", body)
			}
		})
	}
}

func TestProbeSendsNothingOfTheTrace(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{Endpoint: Chat}, {Prompt: Words}, {Prompt: Tokens}} {
		bodies := make(chan string, 2)
		s := serve(t, listing(listed("m"), func(p *peer, r *http.Request, body string) {
			bodies <- body
			usual(p, r, body)
		}))
		c := client(t, s.url, func(to *Config) { to.Endpoint, to.Prompt = cfg.Endpoint, cfg.Prompt })
		before := c.PromptDigest()
		if notes, err := c.Probe(context.Background()); err != nil || len(notes) > 0 {
			t.Fatalf("notes %q, error %v", notes, err)
		}
		var sent struct {
			Model     string `json:"model"`
			MaxTokens int    `json:"max_tokens"`
		}
		short, long := <-bodies, <-bodies
		for _, body := range []string{short, long} {
			if jsonscan.Strict.UnmarshalFromString(body, &sent) != nil || sent.Model != "m" || sent.MaxTokens != 1 {
				t.Errorf("%+v probes with %s", cfg, body)
			}
		}
		// The second does not find the first in a cache.
		if countIn(short) != probeTokens || countIn(long) != probeTokens+longerTokens || strings.HasPrefix(long[40:], short[40:80]) {
			t.Errorf("%+v probes with %s and %s", cfg, short, long)
		}
		if c.PromptDigest() != before {
			t.Error("the probe counts as a prompt")
		}
	}
}

// A canceled probe returns the context's error, and the client still works.
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

// refusal is how a server answers a request that contains something.
type refusal struct {
	in     string // the path or a part of the body; !x is a body without x
	status string
	text   string
}

func (r refusal) applies(path, body string) bool {
	if part, without := strings.CutPrefix(r.in, "!"); without {
		return !strings.Contains(body, part)
	}
	return strings.Contains(path+" "+body, r.in)
}

// picky is a server of one model with refusals. It counts the tokens of ids and
// words, and the requests.
func picky(requests chan<- string, refusals ...refusal) func(*peer) {
	return always(func(p *peer, r *http.Request, body string) {
		requests <- r.URL.Path
		if r.Method != http.MethodGet || slices.ContainsFunc(refusals, func(no refusal) bool { return no.in == "/v1/" }) {
			for _, no := range refusals {
				if no.applies(r.URL.Path, body) {
					p.say(answerOf(no.status, "application/json", no.text))
					return
				}
			}
		}
		if r.Method == http.MethodGet {
			p.say(listed("m"))
			return
		}
		usual(p, r, body)
	})
}

func message(text string) string { return fmt.Sprintf(`{"error":{"message":%q}}`, text) }

const (
	bad           = "400 Bad Request"
	unprocessable = "422 Unprocessable Entity"
	notFound      = "404 Not Found"
)

// gpt behaves like OpenAI's newer chat models.
var gpt = []refusal{
	{"/v1/completions", notFound, message("This is a chat model and not supported in the v1/completions endpoint. Did you mean to use v1/chat/completions?")},
	{`"max_tokens"`, bad, message("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")},
	{"continuous_usage_stats", bad, message("Unknown parameter: 'stream_options.continuous_usage_stats'.")},
	{"return_token_ids", bad, message("Unknown parameter: 'return_token_ids'.")},
	{"ignore_eos", bad, message("Unknown parameter: 'ignore_eos'.")},
	{"min_tokens", bad, message("Unknown parameter: 'min_tokens'.")},
}

// Refused parameters are omitted, however the server words the refusal. A note names the
// effect, and each refusal costs one more request.
func TestNegotiation(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refusals []refusal
		edit     func(*Config)
		requests int
		accepted string
		notes    []string // parts, in order
	}{
		"nothing":                {requests: 3, accepted: "max_tokens ignore_eos min_tokens stream_options token ids"},
		"max_tokens":             {[]refusal{gpt[1]}, nil, 4, "max_completion_tokens ignore_eos min_tokens stream_options token ids", []string{"refuses max_tokens: max_completion_tokens is sent"}},
		"stream_options":         {[]refusal{{"stream_options", bad, message("stream_options: extra fields not permitted")}}, nil, 5, "max_tokens ignore_eos min_tokens token ids", []string{"refuses stream_options"}},
		"continuous usage":       {[]refusal{gpt[2]}, nil, 4, "max_tokens ignore_eos min_tokens stream_options token ids", nil},
		"min_tokens":             {[]refusal{{"min_tokens", unprocessable, `{"detail":[{"loc":["body","min_tokens"],"msg":"extra fields not permitted"}]}`}}, nil, 4, "max_tokens ignore_eos stream_options token ids", []string{"refuses min_tokens"}},
		"token ids, Ollama":      {[]refusal{{`"prompt":[`, bad, message("json: cannot unmarshal array into Go struct field CompletionRequest.prompt of type string")}}, nil, 4, "max_tokens ignore_eos min_tokens stream_options", []string{"takes no token ids: prompts are sent as words"}},
		"token ids, FastAPI":     {[]refusal{{`"prompt":[`, unprocessable, `{"detail":[{"type":"string_type","loc":["body","prompt"],"msg":"Input should be a valid string"}]}`}}, nil, 4, "max_tokens ignore_eos min_tokens stream_options", []string{"takes no token ids"}},
		"chat only, FastAPI":     {[]refusal{{"/v1/completions", notFound, `{"detail":"Not Found"}`}}, nil, 4, "max_tokens ignore_eos min_tokens stream_options", []string{"has no completions API: prompts are sent as chats"}},
		"chat only, 405":         {[]refusal{{"/v1/completions", "405 Method Not Allowed", "Method Not Allowed"}}, nil, 4, "max_tokens ignore_eos min_tokens stream_options", []string{"has no completions API"}},
		"everything":             {gpt, nil, 8, "max_completion_tokens stream_options", []string{"has no completions API", "refuses max_tokens: max_completion_tokens is sent", "refuses ignore_eos, so it is not sent", "refuses min_tokens: answers may be shorter"}},
		"everything, preset":     {gpt, func(cfg *Config) { cfg.Server = "openai" }, 3, "max_completion_tokens stream_options", []string{"OpenAI has no ignore_eos: answers may be shorter"}},
		"token ids, LiteLLM":     {[]refusal{{`"prompt":[`, "500 Internal Server Error", message("Unmapped prompt format. Your prompt is neither a list of strings nor a string.")}}, nil, 4, "max_tokens ignore_eos min_tokens stream_options", []string{"takes no token ids"}},
		"transformers":           {[]refusal{{"return_token_ids", unprocessable, `{"detail":"Unexpected fields in the request: {'return_token_ids', 'min_tokens', 'ignore_eos'}"}`}, {"ignore_eos", unprocessable, `{"detail":"Unexpected fields in the request: {'ignore_eos', 'min_tokens'}"}`}, {"min_tokens", unprocessable, `{"detail":"Unexpected fields in the request: {'min_tokens'}"}`}, {`"prompt":[`, bad, `{"detail":"prompt must be a string."}`}}, nil, 7, "max_tokens stream_options", []string{"refuses ignore_eos", "refuses min_tokens", "takes no token ids"}},
		"everything, not saying": {[]refusal{{"continuous_usage_stats", bad, "no"}, {"ignore_eos", bad, "no"}, {`"max_tokens"`, bad, "no"}}, nil, 6, "max_completion_tokens stream_options token ids", []string{"may refuse ignore_eos and min_tokens", "may refuse max_tokens"}},
		"small vocabulary":       {[]refusal{{"29999]", bad, message("Token id 29999 is out of vocabulary")}, {"7499]", bad, message("Token id 7499 is out of vocabulary")}}, nil, 5, "max_tokens ignore_eos min_tokens stream_options token ids", []string{"fewer than 30000 tokens: token ids are drawn from 937 to 7499", "fewer than 7500 tokens: token ids are drawn from 234 to 1874"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requests := make(chan string, 20)
			c := client(t, serve(t, picky(requests, tc.refusals...)).url, func(cfg *Config) {
				if tc.edit != nil {
					tc.edit(cfg)
				}
			})
			for again := range 2 { // a second probe asks for everything again
				notes, err := c.Probe(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(c.Accepted(), " "); got != tc.accepted {
					t.Errorf("accepted %q, want %q", got, tc.accepted)
				}
				if len(notes) != len(tc.notes) {
					t.Fatalf("notes %q, want %q", notes, tc.notes)
				}
				for i, note := range notes {
					if !strings.Contains(note, tc.notes[i]) {
						t.Errorf("note %q, want %q", note, tc.notes[i])
					}
				}
				if n := len(requests); n != (again+1)*tc.requests || n > (again+1)*8 {
					t.Errorf("%d requests, want %d", n, tc.requests)
				}
			}
			// The server takes what a row becomes.
			made := prepare(t, c, row)
			for _, no := range tc.refusals {
				if no.applies(c.Target(), string(made.body)) {
					t.Errorf("%s is refused: %s", made.body, no.text)
				}
			}
		})
	}
}

// Explicit choices of the user are not negotiated: the error quotes the server and names
// the alternative.
func TestRefusedChoices(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refusal refusal
		edit    func(*Config)
		want    Remedy
	}{
		"completions":       {gpt[0], func(cfg *Config) { cfg.Endpoint = Completions }, UseChat},
		"token ids":         {refusal{`"prompt":[`, bad, message("prompt must be a string")}, func(cfg *Config) { cfg.Prompt = Tokens }, UseWords},
		"token range":       {refusal{`"prompt":[`, bad, message("Token id 19999 is out of vocabulary")}, func(cfg *Config) { cfg.Source = prompt.Source{Low: 10_000, High: 20_000} }, UseSmallerIDs},
		"model":             {refusal{"", notFound, message("The model `m` does not exist.")}, nil, UseOtherModel},
		"model, LiteLLM":    {refusal{`"prompt"`, bad, message("/completions: Invalid model name passed in model=m. Call `/v1/models` to view available models for your key.")}, nil, UseOtherModel},
		"list refused, too": {refusal{"/v1/", bad, message("No connected db.")}, nil, UseKey},
		"no key":            {refusal{"", "401 Unauthorized", message("Unauthorized")}, nil, UseKey},
		"path":              {refusal{"", notFound, "404 page not found"}, func(cfg *Config) { cfg.Endpoint = Chat }, UseOtherURL},
		"extra body":        {refusal{"top_k", bad, message("unknown parameter: top_k")}, func(cfg *Config) { cfg.ExtraBody = `{"top_k":5}` }, UseLessExtra},
		"context":           {refusal{"", bad, message("This model's maximum context length is 4 tokens.")}, nil, UseShorterText},
		"no way to know":    {refusal{"", bad, "bad request"}, nil, UseOtherSetting},
		"vocabulary of 100": {refusal{"", bad, message("Token id 29999 is out of vocabulary")}, nil, UseSmallerIDs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requests := make(chan string, 20)
			s := serve(t, picky(requests, tc.refusal))
			c := client(t, s.url, func(cfg *Config) {
				if tc.edit != nil {
					tc.edit(cfg)
				}
			})
			_, err := c.Probe(context.Background())
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Remedy != tc.want || !strings.Contains(err.Error(), s.url) {
				t.Errorf("error %v, want remedy %q", err, tc.want)
			}
			if len(requests) > 8 {
				t.Errorf("%d requests", len(requests))
			}
		})
	}
}

// A server that refuses both names of the limit gets each once.
func TestLimitSwappedOnce(t *testing.T) {
	t.Parallel()
	requests := make(chan string, 20)
	s := serve(t, picky(requests, refusal{"max_", bad, message("max_tokens and max_completion_tokens are not supported")}))
	if _, err := client(t, s.url, func(*Config) {}).Probe(context.Background()); err == nil || len(requests) != 3 {
		t.Errorf("%d requests, error %v", len(requests), err)
	}
}

// If a later server has chat only, the earlier ones are probed with chats, too.
func TestNegotiationOfSeveralServers(t *testing.T) {
	t.Parallel()
	requests, others := make(chan string, 20), make(chan string, 20)
	both := serve(t, picky(requests)).url
	chat := serve(t, picky(others, refusal{"/v1/completions", notFound, `{"detail":"Not Found"}`})).url
	c := client(t, "", func(cfg *Config) { cfg.URLs = []string{both, chat} })
	notes, err := c.Probe(context.Background())
	if err != nil || len(notes) != 1 || c.Endpoint() != Chat {
		t.Errorf("endpoint %s, notes %q, %v", c.Endpoint(), notes, err)
	}
	var paths []string
	for range len(requests) {
		paths = append(paths, <-requests)
	}
	if want := []string{"/v1/models", "/v1/completions", "/v1/completions", "/v1/chat/completions", "/v1/chat/completions"}; !slices.Equal(paths, want) {
		t.Errorf("the first server got %q", paths)
	}
}
