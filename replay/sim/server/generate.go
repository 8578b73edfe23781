package server

import "fmt"

// generateAPI is SGLang's native API. Each event has the text so far, and the ids
// of the tokens that are new. Reasoning is part of the text.
var generateAPI = api{
	name: "generate", path: "/generate",
	promptParam: "text",
	maxTokens:   128, // as in SGLang

	tokenIDs:       func(w *wireRequest) (string, *raw) { return `"input_ids"`, &w.InputIDs },
	readPrompt:     readGeneratePrompt,
	readParameters: samplingParameters,

	encoder: generate{},
	errorBody: func(e *apiError) any {
		return map[string]map[string]string{"error": {"message": e.message}}
	},
}

// readGeneratePrompt adds the text, or the token ids, of a prompt.
func readGeneratePrompt(w *wireRequest, p tokens) *apiError {
	m, param := w.Text, "text"
	if !absent(w.InputIDs) {
		m, param = w.InputIDs, "input_ids"
	}
	switch {
	case absent(m):
		return badRequest(param, "either text or input_ids must be given")
	case param == "input_ids":
		return readTokenIDs(m, param, p)
	case m[0] == '[':
		return badRequest(param, "only one prompt per request is supported")
	}
	return readText(m, param, p)
}

// samplingParameters reads the parameters, which are members of a member.
func samplingParameters(w *wireRequest) (p parameters, err *apiError) {
	var s struct {
		MaxNewTokens raw `json:"max_new_tokens"`
		MinNewTokens raw `json:"min_new_tokens"`
		IgnoreEOS    raw `json:"ignore_eos"`
		Stop         raw `json:"stop"`
		NoStopTrim   raw `json:"no_stop_trim"`
		N            raw `json:"n"`
		JSONSchema   raw `json:"json_schema"`
		Regex        raw `json:"regex"`
		EBNF         raw `json:"ebnf"`
	}
	if err := decode(w.SamplingParams, "sampling_params", "an object", &s); err != nil {
		return p, err
	}
	for _, other := range []parameter{{"n", s.N}, {"json_schema", s.JSONSchema}, {"regex", s.Regex}, {"ebnf", s.EBNF}} {
		if !absent(other.value) && !(other.name == "n" && string(other.value) == "1") {
			return p, notSupported(other.name)
		}
	}
	return parameters{
		maxTokens:   []parameter{{"max_new_tokens", s.MaxNewTokens}},
		minTokens:   parameter{"min_new_tokens", s.MinNewTokens},
		ignoreEOS:   parameter{"ignore_eos", s.IgnoreEOS},
		stop:        parameter{"stop", s.Stop},
		includeStop: parameter{"no_stop_trim", s.NoStopTrim},
	}, nil
}

// generate encodes the answers of generateAPI.
type generate struct{}

// eosToken is the id of the token that ends an answer of the model's own accord.
const eosToken = 2

func (generate) appendAnswer(b []byte, a *answer, from, upTo int, u usage) []byte {
	b = append(b, `{"text":"`...)
	b = a.appendText(b, 0, upTo)
	b = append(b, `","output_ids":[`...)
	b = a.appendIDs(b, from, upTo)
	b = append(b, `],"meta_info":{"id":"`...)
	b = append(b, a.id...)
	b = append(b, `","finish_reason":`...)
	b = generate{}.appendFinish(b, a, upTo)
	b = appendMember(b, `,"prompt_tokens":`, u.prompt)
	b = appendMember(b, `,"completion_tokens":`, upTo)
	b = appendMember(b, `,"cached_tokens":`, u.cached)
	return append(b, '}')
}

// appendFinish appends the finish reason of an answer that has the given number of
// tokens so far.
func (generate) appendFinish(b []byte, a *answer, tokens int) []byte {
	switch {
	case tokens < a.finish.tokens:
		return append(b, "null"...)
	case a.finish.stop != "":
		return fmt.Appendf(b, `{"type":"stop","matched":%s}`, quoted(a.finish.stop))
	case a.finish.reason == FinishStop:
		return fmt.Appendf(b, `{"type":"stop","matched":%d}`, eosToken)
	}
	return fmt.Appendf(b, `{"type":"length","length":%d}`, tokens)
}

func (g generate) appendWhole(b []byte, a *answer, u usage) []byte {
	return append(g.appendAnswer(b, a, 0, a.finish.tokens, u), '}')
}

func (generate) begin(*answer) {}

func (generate) appendAccepted(b []byte, _ *answer, _ int64) []byte { return b }

func (g generate) appendToken(b []byte, a *answer, k int, u usage, stamp int64) []byte {
	b = append(b, "data: "...)
	b = g.appendAnswer(b, a, k, k+1, u)
	return a.closeEvent(b, stamp)
}

func (generate) appendEnd(b []byte, _ *answer, _ usage, _ int64) []byte {
	return append(b, streamDone...)
}

func (generate) appendError(b []byte, a *answer, e *apiError, _ int64) []byte {
	return appendErrorEvent(b, a, e)
}
