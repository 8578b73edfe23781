package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// refusable is a parameter that a server can be configured to refuse, as OpenAI's
// servers and others do.
type refusable struct {
	name string
	// err returns the error for a request that has it, otherwise nil.
	err func(*api, *wireRequest, parameters) *apiError
}

// refusables lists the parameters that [Config.Refuse] may name.
var refusables = []refusable{
	{"max_tokens", func(_ *api, _ *wireRequest, p parameters) *apiError { return p.refuseMaxTokens(0) }},
	{"max_completion_tokens", func(_ *api, _ *wireRequest, p parameters) *apiError { return p.refuseMaxTokens(1) }},
	{"stream_options", func(_ *api, _ *wireRequest, p parameters) *apiError {
		return unsupportedParameter(p.streamOptions, "")
	}},
	{"continuous_usage_stats", func(_ *api, _ *wireRequest, p parameters) *apiError {
		var o struct {
			Given raw `json:"continuous_usage_stats"`
		}
		p.streamOptions.decode("", &o) // an error is reported later
		return unknownParameter(parameter{"stream_options.continuous_usage_stats", o.Given})
	}},
	{"return_token_ids", func(_ *api, w *wireRequest, _ parameters) *apiError {
		return unknownParameter(w.get("return_token_ids"))
	}},
	{"ignore_eos", func(_ *api, _ *wireRequest, p parameters) *apiError { return unknownParameter(p.ignoreEOS) }},
	{"min_tokens", func(_ *api, _ *wireRequest, p parameters) *apiError { return unknownParameter(p.minTokens) }},
	{"nvext", func(_ *api, _ *wireRequest, p parameters) *apiError { return unknownParameter(p.nvExt) }},
	{"token_ids", refuseTokenIDs},
}

// refuseMaxTokens refuses one of the two names that OpenAI has for the maximum
// number of tokens.
func (p *parameters) refuseMaxTokens(i int) *apiError {
	if len(p.maxTokens) != 2 {
		return nil
	}
	return unsupportedParameter(p.maxTokens[i], fmt.Sprintf(" Use '%s' instead.", p.maxTokens[1-i].name))
}

func unsupportedParameter(p parameter, instead string) *apiError {
	if p.absent() {
		return nil
	}
	err := badRequest(p.name, "Unsupported parameter: '%s' is not supported with this model.%s", p.name, instead)
	err.code = "unsupported_parameter"
	return err
}

func unknownParameter(p parameter) *apiError {
	if len(p.value) == 0 {
		return nil
	}
	err := badRequest(p.name, "Unknown parameter: '%s'.", p.name)
	err.code = "unknown_parameter"
	return err
}

// refuseTokenIDs refuses an array that holds token ids.
func refuseTokenIDs(api *api, w *wireRequest, _ parameters) *apiError {
	if api.tokenIDs == "" {
		return nil
	}
	ids := w.get(api.tokenIDs)
	start := strings.TrimLeft(string(ids.value[:min(len(ids.value), 64)]), " \t\r\n")
	if array := strings.TrimLeft(start, "[ \t\r\n"); array == start || strings.HasPrefix(array, `"`) {
		return nil
	}
	err := badRequest(ids.name, "Invalid type for '%s': expected a string, but got an array instead.", ids.name)
	err.code = "invalid_type"
	return err
}

// refuseAPI is the error of a server that does not have an API.
func refuseAPI(api *api) *apiError {
	if api != &completionAPI {
		return newError(fasthttp.StatusNotFound, "%q is not served", api.path)
	}
	err := newError(fasthttp.StatusNotFound, "This is a chat model and not supported in the v1/completions endpoint. "+
		"Did you mean to use v1/chat/completions?")
	err.param = "model"
	return err
}

// Refusable returns the names that [Config.Refuse] may have: parameters and APIs.
func Refusable() (names []string) {
	for _, r := range refusables {
		names = append(names, r.name)
	}
	for _, api := range apis {
		names = append(names, api.name)
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
func (c Config) refuse(api *api, w *wireRequest, p parameters) *apiError {
	if slices.Contains(c.Refuse, api.name) {
		return refuseAPI(api)
	}
	for _, r := range refusables {
		if !slices.Contains(c.Refuse, r.name) {
			continue
		}
		if err := r.err(api, w, p); err != nil {
			return err
		}
	}
	return nil
}
