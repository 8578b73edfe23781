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
)

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

// What a server refuses is left out, however it says so, with a note that tells
// what is lost, and with one more request for each refusal.
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

// What the user chose is not negotiated: the error quotes the server and tells
// what to choose instead.
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
