package server

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/bytedance/sonic"
	"github.com/bytedance/sonic/decoder"
	"github.com/valyala/fasthttp"

	"moontide/replay/sim/engine"
)

// bodyJSON accepts only standard JSON and returns no strings that point into a
// body, whose memory is reused.
var bodyJSON = sonic.Config{CopyString: true, ValidateString: true, CaseSensitive: true}.Froze()

// raw is an undecoded member of a body.
type raw = sonic.NoCopyRawMessage

// wireRequest is the body of a request, with the members of all APIs; each reads
// its own. Members are decoded separately so that errors can name them. Unlisted
// members are ignored.
type wireRequest struct {
	Model        raw `json:"model"`
	Messages     raw `json:"messages"`
	Prompt       raw `json:"prompt"`
	Input        raw `json:"input"`
	Instructions raw `json:"instructions"`
	System       raw `json:"system"`
	Text         raw `json:"text"`
	InputIDs     raw `json:"input_ids"`

	Stream              raw `json:"stream"`
	StreamOptions       raw `json:"stream_options"`
	MaxTokens           raw `json:"max_tokens"`
	MaxCompletionTokens raw `json:"max_completion_tokens"`
	MaxOutputTokens     raw `json:"max_output_tokens"`
	MinTokens           raw `json:"min_tokens"`
	IgnoreEOS           raw `json:"ignore_eos"`
	NvExt               raw `json:"nvext"`
	Stop                raw `json:"stop"`
	StopSequences       raw `json:"stop_sequences"`
	IncludeStop         raw `json:"include_stop_str_in_output"`
	ReturnTokenIDs      raw `json:"return_token_ids"`
	SamplingParams      raw `json:"sampling_params"`
	CacheControl        raw `json:"cache_control"`

	ResponseFormat raw `json:"response_format"`

	// Unsupported parameters. The harmless tag lists the values, separated by
	// spaces, that are accepted because they do not change the answer.
	N              raw `json:"n" harmless:"1"`
	BestOf         raw `json:"best_of" harmless:"1"`
	UseBeamSearch  raw `json:"use_beam_search" harmless:"false"`
	Tools          raw `json:"tools" harmless:"[]"`
	ToolChoice     raw `json:"tool_choice" harmless:"\"none\" \"auto\""`
	Functions      raw `json:"functions" harmless:"[]"`
	Logprobs       raw `json:"logprobs" harmless:"false"`
	TopLogprobs    raw `json:"top_logprobs" harmless:"0"`
	PromptLogprobs raw `json:"prompt_logprobs" harmless:"null"`
	Echo           raw `json:"echo" harmless:"false"`
	Suffix         raw `json:"suffix" harmless:"\"\""`
	Audio          raw `json:"audio" harmless:"null"`
	Modalities     raw `json:"modalities" harmless:"[\"text\"]"`
	PromptEmbeds   raw `json:"prompt_embeds" harmless:"null"`
	TruncatePrompt raw `json:"truncate_prompt_tokens" harmless:"null"`
	GuidedJSON     raw `json:"guided_json" harmless:"null"`
	GuidedRegex    raw `json:"guided_regex" harmless:"null"`
	GuidedChoice   raw `json:"guided_choice" harmless:"null"`
	GuidedGrammar  raw `json:"guided_grammar" harmless:"null"`
	Structured     raw `json:"structured_outputs" harmless:"null"`
	Previous       raw `json:"previous_response_id" harmless:"null"`
	Conversation   raw `json:"conversation" harmless:"null"`
	Background     raw `json:"background" harmless:"false"`
	ReturnLogprob  raw `json:"return_logprob" harmless:"false"`
	InputEmbeds    raw `json:"input_embeds" harmless:"null"`

	// Breakpoint is the number of prompt tokens up to the last part that the
	// client wants to be cached.
	Breakpoint int `json:"-"`
}

// unsupported lists the members tagged with harmless values.
var unsupported = slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[wireRequest]()), func(f reflect.StructField) bool {
	return f.Tag.Get("harmless") == ""
})

type streamOptions struct {
	IncludeUsage         bool `json:"include_usage"`
	ContinuousUsageStats bool `json:"continuous_usage_stats"`
}

// request is a parsed request for an answer.
type request struct {
	prompt          *engine.Prompt
	model           string // "" if the request names none
	session         string
	length          lengthLimits
	maxTokens       int // as given; 0 if not
	stops           stopStrings
	stream          bool
	includeUsage    bool
	continuousUsage bool // usage in each event
	returnTokenIDs  bool // token ids in each choice
	breakpoint      int
}

// compileDecoders moves the milliseconds taken by the first use of a type out
// of the first TTFT. An error would only cost that time.
var compileDecoders = sync.OnceFunc(func() {
	for _, v := range []any{wireRequest{}, streamOptions{}, []wireMessage{}, []wirePart{}} {
		_ = sonic.Pretouch(reflect.TypeOf(v))
	}
})

// read reads the members of a body and checks the model.
func (c Config) read(body []byte, api *api) (*wireRequest, *apiError) {
	w, err := decodeBody(body, api)
	if err != nil {
		return nil, badRequest("", "the body is not a JSON object: %s", cause(err))
	}
	var model string
	if err := decode(w.Model, "model", "a string", &model); err != nil {
		return nil, err
	}
	if !absent(w.Model) && !c.serves(model) {
		return nil, c.noModel(model)
	}
	return w, nil
}

func decodeBody(body []byte, api *api) (*wireRequest, error) {
	w := new(wireRequest)
	if api.tokenIDs != nil {
		key, member := api.tokenIDs(w)
		if rest, ids, cut := cutTokenIDs(body, key); cut && bodyJSON.Unmarshal(rest, w) == nil && bytes.Equal(*member, cutMark) {
			*member = ids
			return w, nil
		}
		*w = wireRequest{}
	}
	return w, bodyJSON.Unmarshal(body, w)
}

// parse parses the body of a request for an answer. The result does not refer
// to body.
func (c Config) parse(body []byte, api *api) (*request, *apiError) {
	w, err := c.read(body, api)
	if err != nil {
		return nil, err
	}
	p, err := api.readParameters(w)
	if err != nil {
		return nil, err
	}
	if err := c.refuse(api, w, p); err != nil {
		return nil, err
	}
	if err := refuseUnsupported(w); err != nil {
		return nil, err
	}
	r := &request{prompt: engine.NewPrompt(c.Deployment.Engine.BlockSize)}
	if err := decode(w.Model, "model", "a string", &r.model); err != nil {
		return nil, err
	}
	if slices.Contains(c.Adapters, r.model) {
		r.prompt.SetAdapter(r.model)
	}
	if err := c.readPrompt(api, w, r.prompt); err != nil {
		return nil, err
	}
	if r.prompt.Len() == 0 {
		return nil, badRequest(api.promptParam, "the prompt is empty")
	}
	if r.breakpoint = w.Breakpoint; !absent(w.CacheControl) {
		r.breakpoint = r.prompt.Len()
	}
	if err := p.readLength(r, c.Deployment.Engine.MaxModelLen, api); err != nil {
		return nil, err
	}
	if err := p.readStop(&r.stops); err != nil {
		return nil, err
	}
	if err := decode(w.Stream, "stream", "a boolean", &r.stream); err != nil {
		return nil, err
	}
	if err := decode(w.ReturnTokenIDs, "return_token_ids", "a boolean", &r.returnTokenIDs); err != nil {
		return nil, err
	}
	return r, p.readStreamOptions(r)
}

func (c Config) noModel(name string) *apiError {
	return &apiError{
		status:  fasthttp.StatusNotFound,
		message: fmt.Sprintf("the model %q does not exist; this server has %q", shortened(name), strings.Join(append([]string{c.Model}, c.Adapters...), ", ")),
		param:   "model", code: "model_not_found",
	}
}

// refuseUnsupported returns an error for a parameter whose value would change
// the answer.
func refuseUnsupported(w *wireRequest) *apiError {
	values := reflect.ValueOf(w).Elem()
	for _, f := range unsupported {
		value := values.FieldByIndex(f.Index).Bytes()
		if !absent(value) && !slices.Contains(strings.Split(f.Tag.Get("harmless"), " "), string(value)) {
			return notSupported(f.Tag.Get("json"))
		}
	}
	return nil
}

// readLength reads the length limits of the answer. The default is the rest of
// the context length, as far as the API allows.
func (p *parameters) readLength(r *request, limit int, api *api) *apiError {
	isl := r.prompt.Len()
	if isl >= limit {
		return contextLength(limit, isl, 1, api)
	}
	s := &r.length
	s.maxTokens = min(api.maxTokens, limit-isl)
	for _, most := range p.maxTokens {
		if err := decode(most.value, most.name, "an integer", &s.maxTokens); err != nil {
			return err
		}
		if s.maxTokens < 1 {
			return badRequest(most.name, "%s must be at least 1, got %d", most.name, s.maxTokens)
		}
		if !absent(most.value) {
			r.maxTokens = s.maxTokens
		}
	}
	if s.maxTokens > limit-isl {
		return contextLength(limit, isl, s.maxTokens, api)
	}
	if err := p.readNvExt(s); err != nil {
		return err
	}
	least := p.minTokens
	if err := decode(least.value, least.name, "an integer", &s.minTokens); err != nil {
		return err
	}
	if s.minTokens < 0 || s.minTokens > s.maxTokens {
		return badRequest(least.name, "%s must be between 0 and %s=%d, got %d", least.name, p.maxTokens[0].name, s.maxTokens, s.minTokens)
	}
	return decode(p.ignoreEOS.value, p.ignoreEOS.name, "a boolean", &s.ignoreEOS)
}

// readNvExt reads parameters that NVIDIA's servers have in a member of their own.
func (p *parameters) readNvExt(s *lengthLimits) *apiError {
	var o struct {
		MinTokens raw `json:"min_tokens"`
		IgnoreEOS raw `json:"ignore_eos"`
	}
	if err := decode(p.nvExt.value, p.nvExt.name, "an object", &o); err != nil {
		return err
	}
	if err := decode(o.MinTokens, "nvext.min_tokens", "an integer", &s.minTokens); err != nil {
		return err
	}
	return decode(o.IgnoreEOS, "nvext.ignore_eos", "a boolean", &s.ignoreEOS)
}

// readStop reads the stop strings: a string or an array.
func (p *parameters) readStop(s *stopStrings) *apiError {
	stop := p.stop
	if absent(stop.value) {
		return nil
	}
	s.strings = make([]string, 1)
	var into any = &s.strings[0]
	if stop.value[0] == '[' {
		into = &s.strings
	}
	if err := decodeArray(stop.value, stop.name, "a string or an array of strings", maxStops, into); err != nil {
		return err
	}
	for _, text := range s.strings {
		if text == "" || len(text) > maxStopBytes {
			return badRequest(stop.name, "a stop string is empty or longer than %d bytes", maxStopBytes)
		}
	}
	return decode(p.includeStop.value, p.includeStop.name, "a boolean", &s.include)
}

func (p *parameters) readStreamOptions(r *request) *apiError {
	options := p.streamOptions
	if absent(options.value) {
		return nil
	}
	if !r.stream {
		return badRequest(options.name, "%s can only be given together with stream=true", options.name)
	}
	var o streamOptions
	if err := decode(options.value, options.name, "an object of booleans", &o); err != nil {
		return err
	}
	r.includeUsage, r.continuousUsage = o.IncludeUsage, o.IncludeUsage && o.ContinuousUsageStats // as in vLLM
	return nil
}

// absent reports whether a member is missing or null.
func absent(m raw) bool { return len(m) == 0 || string(m) == "null" }

// decode decodes a member into v. If the member is absent, v is unchanged.
func decode(m raw, param, want string, v any) *apiError {
	if absent(m) {
		return nil
	}
	if err := bodyJSON.Unmarshal(m, v); err != nil {
		return badRequest(param, "%s must be %s", param, want)
	}
	return nil
}

// cause returns the message of a JSON library error without its excerpt of the
// body, which may be long and span several lines.
func cause(err error) string {
	if syntax, ok := errors.AsType[decoder.SyntaxError](err); ok {
		return fmt.Sprintf("%s at byte %d", syntax.Message(), syntax.Pos)
	}
	return "a value of another type"
}

func shortened(s string) string {
	const most = 64
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
