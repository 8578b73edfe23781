package requestlog

import (
	"maps"
	"slices"
	"strings"

	"moontide/trace"
)

// langfuse reads an observation. The names of exports of tables and of the API are in
// camel case, those of blob storage are not.
func (e *Entry) langfuse(f *fields) error {
	switch kind := strings.ToUpper(f.text("type")); {
	case kind == "EMBEDDING":
		return ErrOtherCall
	case kind != "GENERATION" && kind != "":
		return ErrNoRequest
	}
	e.ID = f.text("id")
	e.Session = f.text("sessionId", "session_id")
	e.timesOf(f)
	if name, raw := f.first("modelParameters", "model_parameters"); nested(unwrap(raw)) {
		e.request(f, name)
	}
	if _, model := f.first("model", "providedModelName", "provided_model_name"); model != nil {
		e.Body["model"] = model
	}
	if _, tools := f.first("tool_definitions", "toolDefinitions"); nested(unwrap(tools)) {
		e.Body["tools"] = unwrap(tools)
	}
	e.langfuseInput(f)
	if e.First.After(e.Begin) && (e.End.IsZero() || e.First.Before(e.End)) {
		e.Body["stream"] = []byte("true")
	}
	e.langfuseUsage(f)
	if _, output := f.first("output"); output != nil {
		e.answerText(unwrap(output))
	}
	if strings.EqualFold(f.text("level"), "ERROR") {
		e.fail("", "", 0)
	}
	return nil
}

// langfuseInput finds the prompt in what the application passed on: a request, its
// messages, or a text.
func (e *Entry) langfuseInput(f *fields) {
	_, raw := f.first("input")
	input := unwrap(raw)
	switch {
	case len(input) > 2 && input[0] == '"':
		e.Body["prompt"] = input
	case !nested(input):
	case input[0] == '{':
		in := f.object("input")
		if in.has("messages") || in.has("prompt") || in.has("input") {
			e.request(f, "input")
			return
		}
		e.Body["messages"] = input
	default:
		e.Body["messages"] = input
	}
}

// langfuseUsage reads the usage. As Langfuse does, it adds up all kinds of tokens whose
// names have input or output in them: it keeps, for example, cached ones apart.
func (e *Entry) langfuseUsage(f *fields) {
	details := f.object("usageDetails", "usage_details")
	for _, key := range slices.Sorted(maps.Keys(details.members)) {
		lower := strings.ToLower(key)
		one := &fields{members: members{"*": details.members[key]}, path: details.path}
		n := one.tokens("*") // no error names the key, which may be anything
		details.within(one)
		switch {
		case strings.Contains(lower, "input"):
			plus(&e.Input, n)
			if strings.Contains(lower, "cached") || strings.Contains(lower, "cache_read") {
				plus(&e.Cached, n)
			}
		case strings.Contains(lower, "output"):
			plus(&e.Output, n)
			if strings.Contains(lower, "reasoning") {
				plus(&e.Reasoning, n)
			}
		}
	}
	f.within(details)
	if e.Input.Set || e.Output.Set {
		return
	}
	usage := f.object("usage")
	if unit := usage.text("unit"); unit != "" && !strings.EqualFold(unit, "TOKENS") {
		return
	}
	e.Usage.add(usage.usage())
	e.Usage.add(Usage{Input: usage.tokens("input"), Output: usage.tokens("output")})
	f.within(usage)
	e.Usage.add(Usage{Input: f.tokens("promptTokens", "inputUsage"), Output: f.tokens("completionTokens", "outputUsage")})
}

func plus(to *trace.Opt[int], n trace.Opt[int]) {
	if n.Set {
		*to = trace.Some(min(to.Value+n.Value, trace.MaxLength))
	}
}
