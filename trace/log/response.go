package log

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// Usage are numbers of tokens.
type Usage struct{ Input, Output, Cached, Reasoning trace.Opt[int] }

// read reads the usage that servers and gateways write, and keeps what it does not have.
func (u *Usage) read(f *fields) {
	if len(f.members) == 0 {
		return
	}
	input := f.tokens(inputTokens)
	if input.Set && !f.has("prompt_tokens") { // Anthropic counts cached tokens apart
		input.Value = min(input.Value+f.tokens(cacheReads).Value+f.tokens(cacheWrites).Value, trace.MaxLength)
	}
	u.Input = cmp.Or(input, u.Input)
	u.Output = cmp.Or(f.tokens(outputTokens), u.Output)
	u.Cached = cmp.Or(f.tokens(cachedTokens), u.Cached)
	u.Reasoning = cmp.Or(f.tokens(reasoningTokens), u.Reasoning)
}

// readResponse reads the response, which may be the body of an HTTP response, and how the
// request ended.
func (e *Entry) readResponse(f *fields) error {
	_, raw := f.first(responses)
	raw = unwrap(raw)
	response, _ := membersOf(raw)
	if response.has("body") {
		raw = unwrap(response["body"])
	}
	failed := isFailure(f.members["error"])
	chunk := fields{err: f.err}
	for _, part := range chunks(raw) {
		chunk.members, _ = membersOf(part)
		if textOf(chunk.members["object"]) == "list" { // such as of embeddings
			return otherCall
		}
		failed = failed || isFailure(chunk.members["error"])
		for _, name := range []string{"usage", "usageMetadata", "message.usage"} { // Anthropic's message_start has the last
			e.Usage.read(chunk.object(name))
		}
		if _, given := e.Body["model"]; !given && chunk.has("model") {
			e.Body["model"] = chunk.members["model"]
		}
		if created := chunk.time(creations); !created.IsZero() && e.Begin.IsZero() {
			e.Begin, e.BeginCreated = created, true
		}
		e.addTexts("", part, 0)
	}
	for _, of := range []*fields{f.object("hidden_params.usage_object"), f.object("usage"), f} {
		e.Usage.read(of)
	}
	if e.Input.Value == 0 {
		e.Input = trace.Opt[int]{} // no prompt is empty
	}
	for _, of := range []members{f.members, response} {
		_, raw := of.first(statuses)
		if status, err := strconv.Atoi(bare(raw)); err == nil {
			e.Status = status
		}
	}
	e.readOutcome(f, failed)
	return nil
}

// chunks returns the parts of a response: the elements of an array, the events of a stream,
// or the response itself.
func chunks(raw []byte) (parts [][]byte) {
	switch {
	case len(raw) == 0:
		return nil
	case raw[0] == '[':
		elements(raw, func(element []byte) { parts = append(parts, element) })
		return parts
	case raw[0] != '"':
		return [][]byte{raw}
	}
	s := textOf(raw)
	if !strings.HasPrefix(s, "data:") && !strings.HasPrefix(s, "event:") {
		return [][]byte{raw}
	}
	for line := range strings.Lines(s) {
		data, ok := strings.CutPrefix(line, "data:")
		if data = strings.TrimSpace(data); ok && json.Valid([]byte(data)) {
			parts = append(parts, []byte(data))
		}
	}
	return parts
}

// texts are the members of responses that have what the model wrote; a response may be a text
// alone.
var texts = map[string]bool{"": true, "content": true, "text": true, "reasoning_content": true, "reasoning": true, "thinking": true, "arguments": true, "partial_json": true, "delta": true, "output_text": true}

// addTexts adds the texts within a response.
func (e *Entry) addTexts(key string, raw []byte, depth int) {
	switch {
	case depth > jsonscan.MaxDepth:
	case raw[0] == '"' && texts[key]:
		e.Response += textOf(raw)
	case raw[0] == '{':
		jsonscan.Members(raw, func(key []byte, _ int, value []byte) error {
			e.addTexts(string(key), value, depth+1)
			return nil
		})
	default:
		elements(raw, func(element []byte) { e.addTexts(key, element, depth+1) })
	}
}

// isFailure reports whether a member that names an error has one.
func isFailure(raw []byte) bool {
	return !slices.Contains([]string{"", `""`, "{}", "false"}, string(raw))
}

// readOutcome reads how a request ended: from its HTTP status, or from words, and members that
// name an error.
func (e *Entry) readOutcome(f *fields, failed bool) {
	_, state := f.first(endStates)
	ended := strings.ToLower(bare(state))
	class, code := f.text(errorClasses), f.text(errorCodes)
	if status, err := strconv.Atoi(code); err == nil && status >= 100 && status < 600 {
		e.Status = status
	}
	words := strings.ToLower(class + " " + code)
	switch {
	case !failed && class == "" && ended != "failure" && ended != "2" && !strings.HasSuffix(ended, "error") && e.Status >= 0 && e.Status < 300:
		e.Outcome = OK
	case strings.Contains(words, "timeout"), strings.Contains(words, "expired"):
		e.Outcome = "timeout"
	case strings.Contains(words, "cancel"):
		e.Outcome = "canceled"
	case strings.Contains(words, "connection"):
		e.Outcome = "connect"
	case e.Status >= 400:
		e.Outcome = "status"
	default:
		e.Outcome = "server"
	}
}
