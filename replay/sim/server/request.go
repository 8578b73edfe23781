package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"moontide/replay/sim/engine"
	"moontide/trace/jsonscan"
)

// body holds the members of an object in a request, not decoded. The name of a member of
// a member has a dot.
type body map[string][]byte

// bodyOf reads the body of a request to an API.
func bodyOf(text []byte, api *api) (b body, refused *apiError) {
	b, ok := membersOf(text, false, api.tokenIDs)
	if !ok && json.Valid(text) && utf8.Valid(text) {
		b, ok = membersOf(text, true, "")
	}
	if !ok {
		return nil, badRequest("", "the body is not a JSON object")
	}
	for _, name := range api.objects {
		p := b.get(name)
		if p.absent() {
			continue
		}
		members, ok := membersOf(p.value, true, "")
		if !ok {
			return nil, badRequest(name, "%s must be an object", name)
		}
		for inner, value := range members {
			b[name+"."+inner] = value
		}
	}
	return b, nil
}

// membersOf returns the members of an object, and false for any other value. A text that
// is not known to be valid has to be plain ASCII. Token ids are only checked when they are
// read: a long prompt is nearly all of its body.
func membersOf(text []byte, valid bool, ids string) (body, bool) {
	b, c := body{}, jsonscan.New(text)
	for more := c.Open('{'); more; more = c.More('}') {
		name := c.Key()
		var value []byte
		switch {
		case valid:
			value = c.Raw()
		case string(name) == ids:
			value = c.NumbersText()
		}
		if value == nil {
			if value = c.Value(); !isPlain(name) || !isPlain(value) {
				return nil, false
			}
		}
		b[string(name)] = value
	}
	return b, c.Done()
}

// isPlain reports whether a text has no character that JSON may not allow in a string.
func isPlain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return true
}

// parameter is a member of a request, with its name in errors.
type parameter struct {
	name  string
	value []byte
}

func (b body) get(name string) parameter { return parameter{name, b[name]} }

// read decodes a member into v, which is unchanged if the member is absent.
func (b body) read(name, want string, v any) *apiError {
	if p := b.get(name); !p.absent() && json.Unmarshal(p.value, v) != nil {
		return badRequest(name, "%s must be %s", name, want)
	}
	return nil
}

// absent reports whether a member is missing or null.
func (p parameter) absent() bool { return len(p.value) == 0 || string(p.value) == "null" }

func (p parameter) isArray() bool { return p.value[0] == '[' }

func (p parameter) missing() *apiError { return badRequest(p.name, "%s is missing", p.name) }

// request is a parsed request for a response.
type request struct {
	options
	prompt    *engine.Prompt
	session   string
	most, min int // length of the response in tokens; most takes precedence
	stream    bool
	// ignoreEOS makes the response as long as may be. Otherwise the model ends it after 16
	// to 512 tokens, as a pure function of the prompt.
	ignoreEOS bool
}

// length returns the length of the response, and whether that is the most that was asked
// for.
func (r *request) length() (tokens int, full bool) {
	const shortest, longest = 16, 512
	natural := max(r.min, shortest+int(r.prompt.Hash()%(longest-shortest+1)))
	if r.ignoreEOS || natural > r.most {
		return r.most, true
	}
	return natural, false
}

// options are how a client wants its response to be written.
type options struct {
	maxTokens int // 0 if not given
	// Whether a stream has the usage after the last token, or in each event.
	includeUsage, continuousUsage bool
	tokenIDs                      bool // choices have the ids of their tokens
}

// unsupported lists parameters that would change a response, unless they have a harmless
// value.
var unsupported = []struct{ name, harmless string }{
	{"n", "1"}, {"best_of", "1"}, {"use_beam_search", "false"},
	{"tools", "[]"}, {"tool_choice", `"none" "auto"`}, {"functions", "[]"},
	{"logprobs", "false"}, {"top_logprobs", "0"}, {"prompt_logprobs", ""}, {"return_logprob", "false"},
	{"echo", "false"}, {"suffix", `""`}, {"audio", ""}, {"modalities", `["text"]`},
	{"response_format.type", `"text"`}, {"text.format.type", `"text"`},
	{"prompt_embeds", ""}, {"input_embeds", ""}, {"truncate_prompt_tokens", ""},
	{"guided_json", ""}, {"guided_regex", ""}, {"guided_choice", ""}, {"guided_grammar", ""}, {"structured_outputs", ""},
	{"previous_response_id", ""}, {"conversation", ""}, {"background", "false"},
	{"sampling_params.n", "1"}, {"sampling_params.json_schema", ""}, {"sampling_params.regex", ""}, {"sampling_params.ebnf", ""},
}

// parse parses the body of a request for a response. The result does not refer to text.
func (c Config) parse(text []byte, api *api) (*request, *apiError) {
	b, refused := bodyOf(text, api)
	if refused != nil {
		return nil, refused
	}
	r, model := &request{prompt: engine.NewPrompt(c.Deployment.Engine.BlockSize)}, c.Model
	refused = cmp.Or(
		b.read("model", "a string", &model),
		b.read("stream", "a boolean", &r.stream),
		b.read("return_token_ids", "a boolean", &r.tokenIDs),
		b.read(api.ignoreEOS, "a boolean", &r.ignoreEOS),
		b.read(api.least, "an integer", &r.min),
		b.read("stream_options.include_usage", "a boolean", &r.includeUsage),
		b.read("stream_options.continuous_usage_stats", "a boolean", &r.continuousUsage),
		c.refuse(api, b),
		b.readLimits(r, api),
	)
	switch {
	case refused != nil:
		return nil, refused
	case model != c.Model:
		return nil, &apiError{fasthttp.StatusNotFound, fmt.Sprintf("the model %.64q does not exist; this server has %q", model, c.Model), "model", "model_not_found"}
	case !b.get("stream_options").absent() && !r.stream && slices.Contains(api.objects, "stream_options"):
		return nil, badRequest("stream_options", "stream_options can only be given together with stream=true")
	}
	r.continuousUsage = r.continuousUsage && r.includeUsage // as in vLLM
	for _, u := range unsupported {
		if p := b.get(u.name); !p.absent() && !slices.Contains(strings.Fields(u.harmless), string(p.value)) {
			return nil, notSupported(u.name)
		}
	}
	p := promptReader{Prompt: r.prompt, encode: c.Encode}
	if refused := p.read(api, b); refused != nil {
		return nil, refused
	}
	return r, r.fit(c.Deployment.Engine.MaxModelLen, api)
}

// readLimits reads the limits of the response's length.
func (b body) readLimits(r *request, api *api) *apiError {
	for _, name := range api.limits {
		if err := b.read(name, "an integer", &r.maxTokens); err != nil {
			return err
		}
		if !b.get(name).absent() && r.maxTokens < 1 {
			return badRequest(name, "%s must be at least 1, got %d", name, r.maxTokens)
		}
	}
	if api.limited && r.maxTokens == 0 {
		return b.get(api.limits[0]).missing()
	}
	return nil
}

// fit checks that prompt and response fit the context. By default the response may fill
// the rest of the context, up to the API's own limit.
func (r *request) fit(limit int, api *api) *apiError {
	isl := r.prompt.Len()
	switch r.most = cmp.Or(r.maxTokens, min(api.maxTokens, limit-isl)); {
	case isl == 0:
		return badRequest(api.promptParam, "the prompt is empty")
	case isl >= limit:
		return contextLength(limit, isl, 1, api)
	case r.most > limit-isl:
		return contextLength(limit, isl, r.most, api)
	case r.min < 0 || r.min > r.most:
		return badRequest(api.least, "%s must be between 0 and %s=%d, got %d", api.least, api.limits[0], r.most, r.min)
	}
	return nil
}
