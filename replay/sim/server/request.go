package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/bytedance/sonic"
	"github.com/valyala/fasthttp"

	"moontide/replay/sim/engine"
	"moontide/trace/jsonscan"
)

// bodyJSON accepts only standard JSON and returns no strings that point into a
// body, whose memory is reused.
var bodyJSON = sonic.Config{CopyString: true, ValidateString: true, CaseSensitive: true}.Froze()

// raw is an undecoded member of a body.
type raw = sonic.NoCopyRawMessage

// wireRequest is the body of a request. Its members are decoded separately so that
// errors can name them; those of other APIs are ignored.
type wireRequest struct {
	members map[string]raw
}

// get returns a member, which may be absent. The name of a member of a member has a dot.
func (w *wireRequest) get(name string) parameter {
	if name == "" { // of an API that has none
		return parameter{}
	}
	outer, inner, nested := strings.Cut(name, ".")
	p := parameter{name, w.members[outer]}
	if nested && !p.absent() {
		object := p.value
		p.value = nil
		jsonscan.Members(object, func(key []byte, _ int, value []byte) error {
			if string(key) == inner {
				p.value = value
			}
			return nil
		})
	}
	return p
}

// parameter is a member of a request, with its name in errors.
type parameter struct {
	name  string
	value raw
}

// absent reports whether a member is missing or null.
func (p parameter) absent() bool { return absent(p.value) }

func (p parameter) isArray() bool { return p.value[0] == '[' }

func (p parameter) missing() *apiError { return badRequest(p.name, "%s is missing", p.name) }

// decode decodes a member into v. If the member is absent, v is unchanged.
func (p parameter) decode(want string, v any) *apiError {
	if p.absent() {
		return nil
	}
	if err := bodyJSON.Unmarshal(p.value, v); err != nil {
		return badRequest(p.name, "%s must be %s", p.name, want)
	}
	return nil
}

// unsupported lists parameters that would change an answer, unless they have a harmless
// value.
var unsupported = []struct {
	name     string
	harmless []string
}{
	{"n", []string{"1"}}, {"best_of", []string{"1"}}, {"use_beam_search", []string{"false"}},
	{"tools", []string{"[]"}}, {"tool_choice", []string{`"none"`, `"auto"`}}, {"functions", []string{"[]"}},
	{"logprobs", []string{"false"}}, {"top_logprobs", []string{"0"}}, {"prompt_logprobs", nil}, {"return_logprob", []string{"false"}},
	{"echo", []string{"false"}}, {"suffix", []string{`""`}}, {"audio", nil}, {"modalities", []string{`["text"]`}},
	{"prompt_embeds", nil}, {"input_embeds", nil}, {"truncate_prompt_tokens", nil},
	{"guided_json", nil}, {"guided_regex", nil}, {"guided_choice", nil}, {"guided_grammar", nil}, {"structured_outputs", nil},
	{"previous_response_id", nil}, {"conversation", nil}, {"background", []string{"false"}},
	{"sampling_params.n", []string{"1"}}, {"sampling_params.json_schema", nil}, {"sampling_params.regex", nil}, {"sampling_params.ebnf", nil},
}

// answerFormat is what kind of answer is asked for.
type answerFormat struct {
	Type string `json:"type"`
}

type streamOptions struct {
	IncludeUsage         bool `json:"include_usage"`
	ContinuousUsageStats bool `json:"continuous_usage_stats"`
}

// request is a parsed request for an answer.
type request struct {
	asked
	prompt  *engine.Prompt
	session string
	length  lengthLimits
	stream  bool
}

// asked is how a client wants its answer to be written.
type asked struct {
	maxTokens int // 0 if not given
	// Whether a stream has the usage after the last token, or in each event.
	includeUsage, continuousUsage bool
	tokenIDs                      bool // choices have the ids of their tokens
}

// compileDecoders moves the milliseconds taken by the first use of a type out
// of the first TTFT. An error would only cost that time.
var compileDecoders = sync.OnceFunc(func() {
	for _, v := range []any{map[string]raw{}, streamOptions{}, wireMessage{}} {
		_ = sonic.Pretouch(reflect.TypeOf(v))
	}
})

func decodeBody(body []byte, api *api) (*wireRequest, error) {
	w := new(wireRequest)
	if key := api.tokenIDs; key != "" {
		if rest, ids, cut := cutTokenIDs(body, key); cut && w.unmarshal(rest) == nil && bytes.Equal(w.members[key], cutMark) {
			w.members[key] = ids
			return w, nil
		}
		w.members = nil
	}
	return w, w.unmarshal(body)
}

// unmarshal reads the members of a body. Sonic finds a wrong escape in a value that it
// does not decode in some places only.
func (w *wireRequest) unmarshal(body []byte) error {
	if bytes.IndexByte(body, '\\') >= 0 && !json.Valid(body) {
		return errors.New("not JSON")
	}
	return bodyJSON.Unmarshal(body, &w.members)
}

// parse parses the body of a request for an answer. The result does not refer
// to body.
func (c Config) parse(body []byte, api *api) (*request, *apiError) {
	w, err := decodeBody(body, api)
	if err != nil {
		return nil, badRequest("", "the body is not a JSON object")
	}
	r, model := &request{prompt: engine.NewPrompt(c.Deployment.Engine.BlockSize)}, c.Model
	var options streamOptions
	var format answerFormat
	var outer map[string]raw
	decode := func(name, want string, v any) *apiError { return w.get(name).decode(want, v) }
	refused := cmp.Or(
		decode("model", "a string", &model),
		decode("stream", "a boolean", &r.stream),
		decode("return_token_ids", "a boolean", &r.tokenIDs),
		decode(api.outer, "an object", &outer),
		decode(api.ignoreEOS, "a boolean", &r.length.ignoreEOS),
		decode(api.least, "an integer", &r.length.minTokens),
		decode(api.format, "an object", &format),
		decode(api.options, "an object of booleans", &options),
		c.refuse(api, w),
		w.readLimits(r, api),
	)
	switch {
	case refused != nil:
		return nil, refused
	case model != c.Model:
		e := newError(fasthttp.StatusNotFound, "the model %q does not exist; this server has %q", shortened(model), c.Model)
		e.param, e.code = "model", "model_not_found"
		return nil, e
	case !w.get(api.options).absent() && !r.stream:
		return nil, badRequest(api.options, "%s can only be given together with stream=true", api.options)
	case format.Type != "" && format.Type != "text":
		return nil, notSupported(api.format)
	}
	r.includeUsage, r.continuousUsage = options.IncludeUsage, options.IncludeUsage && options.ContinuousUsageStats // as in vLLM
	for _, u := range unsupported {
		if p := w.get(u.name); !p.absent() && !slices.Contains(u.harmless, string(p.value)) {
			return nil, notSupported(u.name)
		}
	}
	if refused := c.readPrompt(api, w, r.prompt); refused != nil {
		return nil, refused
	}
	return r, r.fit(c.Deployment.Engine.MaxModelLen, api)
}

// readLimits reads the limits of the answer's length.
func (w *wireRequest) readLimits(r *request, api *api) *apiError {
	for _, name := range api.limits {
		most := w.get(name)
		if err := most.decode("an integer", &r.maxTokens); err != nil {
			return err
		}
		if !most.absent() && r.maxTokens < 1 {
			return badRequest(name, "%s must be at least 1, got %d", name, r.maxTokens)
		}
	}
	if api.limited && r.maxTokens == 0 {
		return w.get(api.limits[0]).missing()
	}
	return nil
}

// fit checks that prompt and answer fit the context. By default the answer may fill the
// rest of the context, up to the API's own limit.
func (r *request) fit(limit int, api *api) *apiError {
	isl, s := r.prompt.Len(), &r.length
	switch s.maxTokens = cmp.Or(r.maxTokens, min(api.maxTokens, limit-isl)); {
	case isl == 0:
		return badRequest(api.promptParam, "the prompt is empty")
	case isl >= limit:
		return contextLength(limit, isl, 1, api)
	case s.maxTokens > limit-isl:
		return contextLength(limit, isl, s.maxTokens, api)
	case s.minTokens < 0 || s.minTokens > s.maxTokens:
		return badRequest(api.least, "%s must be between 0 and %s=%d, got %d", api.least, api.limits[0], s.maxTokens, s.minTokens)
	}
	return nil
}

// absent reports whether a member is missing or null.
func absent(m raw) bool { return len(m) == 0 || string(m) == "null" }

func shortened(s string) string {
	const most = 64
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
