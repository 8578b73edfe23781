package server

import "fmt"

// generateAPI is SGLang's native API. Each event has the text so far, and the ids
// of the tokens that are new. Reasoning is part of the text.
var generateAPI = api{
	name: "generate", path: "/generate",
	promptParam: "text",
	maxTokens:   128, // as in SGLang

	tokenIDs:       "input_ids",
	readPrompt:     readGeneratePrompt,
	readParameters: samplingParameters,

	encoder: generate{},
	errorBody: func(e *apiError) any {
		return map[string]map[string]string{"error": {"message": e.message}}
	},
}

// readGeneratePrompt adds the text, or the token ids, of a prompt.
func readGeneratePrompt(w *wireRequest, p tokens) *apiError {
	text, ids := w.get("text"), w.get("input_ids")
	switch {
	case !ids.absent():
		return ids.readTokenIDs(p)
	case text.absent():
		return badRequest(text.name, "either text or input_ids must be given")
	case text.isArray():
		return badRequest(text.name, "only one prompt per request is supported")
	}
	return text.readText(p)
}

// samplingUnsupported are parameters that would change an answer.
var samplingUnsupported = []unsupported{{"n", []string{"1"}}, {"json_schema", nil}, {"regex", nil}, {"ebnf", nil}}

// samplingParameters reads the parameters, which are members of a member.
func samplingParameters(w *wireRequest) (p parameters, err *apiError) {
	var s wireRequest
	if err := w.get("sampling_params").decode("an object", &s.members); err != nil {
		return p, err
	}
	if err := s.refuseUnsupported(samplingUnsupported); err != nil {
		return p, err
	}
	return parameters{
		maxTokens: []parameter{s.get("max_new_tokens")},
		minTokens: s.get("min_new_tokens"),
		ignoreEOS: s.get("ignore_eos"),
	}, nil
}

// generate encodes the answers of generateAPI.
type generate struct{}

// eosToken is the id of the token that ends an answer of the model's own accord.
const eosToken = 2

func (generate) appendAnswer(b []byte, a *answer, from, upTo int, u usage) []byte {
	b = append(b, `{"text":"`...)
	b = a.appendWords(b, 0, upTo)
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
	case tokens < a.tokens:
		return append(b, "null"...)
	case a.reason == FinishStop:
		return fmt.Appendf(b, `{"type":"stop","matched":%d}`, eosToken)
	}
	return fmt.Appendf(b, `{"type":"length","length":%d}`, tokens)
}

func (g generate) appendWhole(b []byte, a *answer, u usage) []byte {
	return append(g.appendAnswer(b, a, 0, a.tokens, u), '}')
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
