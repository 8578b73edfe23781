package log

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"moontide/trace"
	"moontide/trace/jsonscan"
)

// Names of calls, and ends of paths of APIs, that generate text, and parts of names that
// do not.
var (
	generating    = []string{"completion", "completions", "responses", "messages", "generate", "chat", "generate_content", "generate_content_stream", "generatecontent", "pass_through_endpoint", "passthrough_route"}
	notGenerating = []string{"get_", "delete_", "list_", "cancel_"}
)

// generates reports whether the name of a call, or the path of an API, is one that
// generates text.
func generates(name string) bool {
	name, _, _ = strings.Cut(strings.ToLower(name), "?")
	return slices.ContainsFunc(generating, func(suffix string) bool { return strings.HasSuffix(name, suffix) }) &&
		!slices.ContainsFunc(notGenerating, func(part string) bool { return strings.Contains(name, part) })
}

// otherCall returns ErrOtherCall if one of some members names a call that generates no
// text.
func (f *fields) otherCall(names ...string) error {
	if name := f.text(names...); name != "" && !generates(name) {
		return ErrOtherCall
	}
	return nil
}

// batch reads a line of a batch: a request, or the answer to one.
func (e *Entry) batch(f *fields) error {
	if err := f.otherCall("url"); err != nil {
		return err
	}
	e.ID = f.text("custom_id")
	if e.Part = !f.has("body"); e.Part || !f.has("response") && !f.has("error") {
		e.Joins = e.ID
	}
	maps.Copy(e.Body, f.object("body").members)
	e.result(f, f.object("response"))
	return nil
}

// result reads the HTTP response of a request.
func (e *Entry) result(f, response *fields) {
	if status := response.number("status_code", "statusCode"); status.Set {
		e.Status = int(status.Value)
	}
	if raw := response.members["body"]; raw != nil {
		e.answer(response, "body", raw)
	}
	if e.Status >= 300 || e.Status < 0 {
		e.fail("", "", e.Status)
	}
	if failure := f.members["error"]; failure != nil && string(failure) != `""` {
		in := f.in(nil, "")
		if failure[0] == '{' {
			in = f.object("error")
		}
		e.fail(in.text("type"), in.text("code"), e.Status)
	}
}

// exchange reads an entry with a request and a response, each a body, or an object with
// one.
func (e *Entry) exchange(f *fields) error {
	request := f.object("request", "request_body")
	for _, of := range []*fields{f, request} {
		if err := of.otherCall("url", "path", "endpoint", "uri"); err != nil {
			return err
		}
	}
	e.ID = f.text("id", "request_id", "requestId", "_id")
	e.Begin = f.time("startTime", "start_time", "started_at", "request_time", "requestTimestamp", "request_timestamp", "created_at", "timestamp", "time", "ts")
	e.First = f.time("completionStartTime", "completion_start_time", "first_token_time", "first_token_at")
	e.End = f.time("endTime", "end_time", "ended_at", "finished_at", "response_time", "responseTimestamp", "response_timestamp")
	if e.First.IsZero() {
		e.First = f.after(e.Begin, "timeToFirstToken", "time_to_first_token")
	}
	if e.End.IsZero() {
		e.End = f.after(e.Begin, "latency", "duration", "duration_s", "latency_ms", "duration_ms", "durationMs")
	}
	body := request
	if name, raw := request.first("body", "json", "data"); raw != nil && !request.has("messages") {
		body = request.object(name)
	}
	maps.Copy(e.Body, body.members)
	e.Status = int(f.number("status_code", "status", "response_status").Value)
	name, raw := f.first("response", "response_body")
	response := f.in(nil, "")
	if raw != nil && unwrap(raw)[0] == '{' {
		response = f.object(name)
	}
	if raw != nil && !response.has("body") {
		e.answer(f, name, raw)
	}
	e.result(f, response)
	e.Usage.add(f.object("usage").usage())
	return nil
}

// litellm reads a StandardLoggingPayload, or a row of LiteLLM's spend logs.
func (e *Entry) litellm(in *fields) error {
	if in.has("standard_logging_object") {
		in = in.object("standard_logging_object")
		e.Fields = in.members
	}
	if err := in.otherCall("call_type"); err != nil {
		return err
	}
	e.ID = in.text("id", "request_id", "litellm_call_id")
	e.Begin = in.time("startTime", "start_time")
	e.First = in.time("completionStartTime", "completion_start_time")
	e.End = in.time("endTime", "end_time")
	e.litellmBody(in)
	if name, response := in.first("response"); response != nil && (nested(response) || response[0] == '"') {
		e.answer(in, name, response)
	}
	e.Usage.add(in.object("hidden_params").object("usage_object").usage())
	e.Usage.add(Usage{Input: in.tokens("prompt_tokens"), Output: in.tokens("completion_tokens")})
	e.CacheHit = in.flag("cache_hit").Value
	failure := in.object("error_information")
	e.Outcome, e.Status = OK, 0
	if in.text("status") == "failure" || failure.text("error_class") != "" {
		e.fail(failure.text("error_class"), failure.text("error_code"), 0)
	}
	return nil
}

// litellmBody collects the request: the proxy's own copy of it if there is one.
func (e *Entry) litellmBody(in *fields) {
	for _, name := range []string{"model_parameters", "optional_params", "proxy_server_request"} {
		if raw := unwrap(in.members[name]); nested(raw) && raw[0] == '{' {
			maps.Copy(e.Body, in.object(name).members)
		}
	}
	if model := in.members["model"]; model != nil {
		e.Body["model"] = model
	}
	if stream := in.flag("stream"); stream.Set {
		e.Body["stream"] = strconv.AppendBool(nil, stream.Value)
	}
	switch messages := unwrap(in.members["messages"]); {
	case nested(messages) && messages[0] == '{': // such as {"messages": [...]}
		maps.Copy(e.Body, in.object("messages").members)
	case nested(messages):
		e.Body["messages"] = messages
	case len(messages) > 2 && messages[0] == '"':
		e.Body["prompt"] = messages
	}
}

// answer takes the body of an answer: an object, the chunks of a stream as an array, the
// text of a stream, or a text.
func (e *Entry) answer(f *fields, name string, raw []byte) {
	e.Answer = ""
	for _, chunk := range chunks(unwrap(raw)) {
		if m, err := membersOf(chunk); err == nil {
			e.chunk(f.in(m, f.path+name+"."))
		}
		e.answerText(chunk)
	}
}

// chunk takes an answer, or a chunk of one.
func (e *Entry) chunk(in *fields) {
	e.Usage.add(in.object("usage", "usageMetadata").usage())
	if raw := in.members["message"]; nested(raw) && raw[0] == '{' { // Anthropic's message_start
		e.Usage.add(in.object("message").object("usage", "usageMetadata").usage())
	}
	if _, given := e.Body["model"]; !given && in.has("model") {
		e.Body["model"] = in.members["model"]
	}
	if created := in.time("created", "created_at"); !created.IsZero() && e.Begin.IsZero() {
		e.Begin, e.BeginCreated = created, true
	}
	e.list = e.list || textOf(in.members["object"]) == "list"
	if in.has("error") {
		e.fail("", "", e.Status)
	}
}

// chunks returns the parts of an answer.
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
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			if data = strings.TrimSpace(data); json.Valid([]byte(data)) {
				parts = append(parts, []byte(data))
			}
		}
	}
	return parts
}

// answerText adds the texts within an answer, or a text.
func (e *Entry) answerText(raw []byte) {
	var text strings.Builder
	if raw[0] == '"' {
		text.WriteString(textOf(raw))
	} else {
		appendTexts(&text, "", raw, 0)
	}
	e.Answer += text.String()
}

// texts are the members of answers that have what the model wrote.
var texts = map[string]bool{"content": true, "text": true, "reasoning_content": true, "reasoning": true, "thinking": true, "arguments": true, "partial_json": true, "delta": true, "output_text": true}

// appendTexts appends the texts within an answer.
func appendTexts(to *strings.Builder, key string, raw []byte, depth int) {
	switch {
	case depth > jsonscan.MaxDepth:
	case raw[0] == '"' && texts[key]:
		to.WriteString(textOf(raw))
	case raw[0] == '{':
		jsonscan.Members(raw, func(key []byte, _ int, value []byte) error {
			appendTexts(to, string(key), value, depth+1)
			return nil
		})
	default:
		elements(raw, func(element []byte) { appendTexts(to, key, element, depth+1) })
	}
}

// usage reads the usage that servers write.
func (f *fields) usage() (u Usage) {
	u.Input = f.tokens("prompt_tokens", "input_tokens", "promptTokens", "inputTokens", "promptTokenCount")
	u.Output = f.tokens("completion_tokens", "output_tokens", "completionTokens", "outputTokens", "candidatesTokenCount")
	u.Cached = f.object("prompt_tokens_details", "input_tokens_details").tokens("cached_tokens")
	u.Reasoning = f.object("completion_tokens_details", "output_tokens_details").tokens("reasoning_tokens")
	read := f.tokens("cache_read_input_tokens")
	if read.Set && !u.Cached.Set {
		u.Cached = read
	}
	if !f.has("prompt_tokens") && u.Input.Set { // Anthropic counts cached tokens apart
		u.Input.Value = min(u.Input.Value+read.Value+f.tokens("cache_creation_input_tokens").Value, trace.MaxLength)
	}
	return u
}

// add takes what another usage has.
func (u *Usage) add(more Usage) {
	take := func(to *trace.Opt[int], from trace.Opt[int]) {
		if from.Set {
			*to = from
		}
	}
	take(&u.Input, more.Input)
	take(&u.Output, more.Output)
	take(&u.Cached, more.Cached)
	take(&u.Reasoning, more.Reasoning)
}

const accepted = 200 // of HTTP

// fail sets the outcome of a request that failed, from what a log calls the failure.
func (e *Entry) fail(class, code string, status int) {
	if n, err := strconv.Atoi(code); err == nil && n >= 100 && n < 600 {
		status = n
	}
	if status != accepted {
		e.Status = status
	}
	switch lower := strings.ToLower(class + " " + code); {
	case strings.Contains(lower, "timeout"), strings.Contains(lower, "expired"):
		e.Outcome = "timeout"
	case strings.Contains(lower, "cancel"):
		e.Outcome = "canceled"
	case strings.Contains(lower, "connection"):
		e.Outcome = "connect"
	case e.Status >= 400:
		e.Outcome = "status"
	default:
		e.Outcome = "server"
	}
}
