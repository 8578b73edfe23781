package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// refusable is what a server can be configured to refuse, as OpenAI's servers and
// others do.
type refusable struct {
	name  string
	given func(*api, *wireRequest) bool // whether a request has it
	err   apiError
}

// refusables lists what [Config.Refuse] may name.
var refusables = []refusable{
	{"max_tokens", func(_ *api, w *wireRequest) bool { return !absent(w.MaxTokens) },
		unsupportedParameter("max_tokens", "Use 'max_completion_tokens' instead.")},
	{"max_completion_tokens", func(_ *api, w *wireRequest) bool { return !absent(w.MaxCompletionTokens) },
		unsupportedParameter("max_completion_tokens", "Use 'max_tokens' instead.")},
	{"stream_options", func(_ *api, w *wireRequest) bool { return !absent(w.StreamOptions) },
		unsupportedParameter("stream_options", "")},
	{"continuous_usage_stats", func(_ *api, w *wireRequest) bool {
		var o struct {
			Given raw `json:"continuous_usage_stats"`
		}
		return decode(w.StreamOptions, "stream_options", "an object", &o) == nil && len(o.Given) > 0
	}, unknownParameter("stream_options.continuous_usage_stats")},
	{"return_token_ids", func(_ *api, w *wireRequest) bool { return !absent(w.ReturnTokenIDs) }, unknownParameter("return_token_ids")},
	{"ignore_eos", func(_ *api, w *wireRequest) bool { return !absent(w.IgnoreEOS) }, unknownParameter("ignore_eos")},
	{"min_tokens", func(_ *api, w *wireRequest) bool { return !absent(w.MinTokens) }, unknownParameter("min_tokens")},
	{"token_ids", func(_ *api, w *wireRequest) bool { return hasTokenIDs(w.Prompt) }, apiError{
		status: fasthttp.StatusBadRequest, param: "prompt", code: "invalid_type",
		message: "Invalid type for 'prompt': expected a string, but got an array instead.",
	}},
	{"completions", func(a *api, _ *wireRequest) bool { return a == &completionAPI }, apiError{
		status: fasthttp.StatusNotFound, param: "model",
		message: "This is a chat model and not supported in the v1/completions endpoint. Did you mean to use v1/chat/completions?",
	}},
}

func unsupportedParameter(name, instead string) apiError {
	return apiError{
		status: fasthttp.StatusBadRequest, param: name, code: "unsupported_parameter",
		message: strings.TrimSpace(fmt.Sprintf("Unsupported parameter: '%s' is not supported with this model. %s", name, instead)),
	}
}

func unknownParameter(name string) apiError {
	return apiError{
		status: fasthttp.StatusBadRequest, param: name, code: "unknown_parameter",
		message: fmt.Sprintf("Unknown parameter: '%s'.", name),
	}
}

// Refusable returns the names that [Config.Refuse] may have.
func Refusable() (names []string) {
	for _, r := range refusables {
		names = append(names, r.name)
	}
	return names
}

// ParseRefuse parses a list of names, separated by commas, for [Config.Refuse].
func ParseRefuse(list string) (names []string, err error) {
	if list == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		names = append(names, strings.TrimSpace(name))
	}
	return names, checkRefuse(names)
}

func checkRefuse(names []string) error {
	for _, name := range names {
		if !slices.Contains(Refusable(), name) {
			return fmt.Errorf("%q cannot be refused: use %s", shortened(name), strings.Join(Refusable(), ", "))
		}
	}
	return nil
}

// refuse returns an error for what the server is configured to refuse.
func (c Config) refuse(api *api, w *wireRequest) *apiError {
	if len(c.Refuse) == 0 {
		return nil
	}
	for _, r := range refusables {
		if slices.Contains(c.Refuse, r.name) && r.given(api, w) {
			return &r.err
		}
	}
	return nil
}

// hasTokenIDs reports whether a prompt is an array that holds token ids.
func hasTokenIDs(prompt raw) bool {
	start := strings.TrimLeft(string(prompt[:min(len(prompt), 64)]), "[ \t\r\n")
	return len(prompt) > 0 && prompt[0] == '[' && !strings.HasPrefix(start, `"`)
}
