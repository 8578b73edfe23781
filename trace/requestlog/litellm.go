package requestlog

import (
	"strconv"

	"moontide/trace/record"
)

// litellm reads a StandardLoggingPayload, or a row of LiteLLM's spend logs.
func (e *Entry) litellm(f *fields) error {
	if f.has("standard_logging_object") {
		f2 := f.object("standard_logging_object")
		f.within(f2)
		e.Fields = f2.members
		return e.litellmPayload(f2, f)
	}
	return e.litellmPayload(f, f)
}

// litellmPayload reads a payload, and passes errors to f.
func (e *Entry) litellmPayload(in, f *fields) error {
	defer func() {
		if in != f {
			f.within(in)
		}
	}()
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
	hidden := in.object("hidden_params")
	if usage := hidden.object("usage_object"); len(usage.members) > 0 {
		e.Usage.add(usage.usage())
		in.within(usage)
	}
	e.Usage.add(Usage{Input: in.tokens("prompt_tokens"), Output: in.tokens("completion_tokens")})
	e.CacheHit = in.flag("cache_hit").Value
	failure := in.object("error_information")
	e.Outcome, e.Status = record.OK, 0
	if in.text("status") == "failure" || failure.text("error_class") != "" {
		e.fail(failure.text("error_class"), failure.text("error_code"), 0)
	}
	in.within(failure)
	return nil
}

// litellmBody collects the request: the proxy's own copy of it if there is one.
func (e *Entry) litellmBody(in *fields) {
	for _, name := range []string{"model_parameters", "optional_params", "proxy_server_request"} {
		if raw := unwrap(in.members[name]); nested(raw) && raw[0] == '{' {
			e.request(in, name)
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
		e.request(in, "messages")
	case nested(messages):
		e.Body["messages"] = messages
	case len(messages) > 2 && messages[0] == '"':
		e.Body["prompt"] = messages
	}
}
