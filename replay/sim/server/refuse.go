package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// tokenIDs stands in [Config.Refuse] for prompts that are token ids.
const tokenIDs = "token_ids"

// Refusable returns what [Config.Refuse] may have: parameters that some servers
// refuse, prompts of token ids, and APIs.
func Refusable() []string {
	names := []string{"max_tokens", "max_completion_tokens", "stream_options", "continuous_usage_stats", "return_token_ids", "ignore_eos", "min_tokens", tokenIDs}
	for _, api := range apis {
		names = append(names, api.name)
	}
	return names
}

// refuse returns an error for what the server is configured to refuse.
func (c Config) refuse(api *api, w *wireRequest) *apiError {
	if slices.Contains(c.Refuse, api.name) {
		return newError(fasthttp.StatusNotFound, "%q is not served", api.path)
	}
	for _, name := range c.Refuse {
		switch ids := w.get(api.tokenIDs); {
		case name == tokenIDs && api.tokenIDs != "" && ids.hasTokenIDs():
			return badRequest(ids.name, "%s must be a string, not an array of token ids", ids.name)
		case w.has(name):
			return badRequest(name, "Unknown parameter: '%s'.", name)
		}
	}
	return nil
}

// hasTokenIDs reports whether a prompt is an array of token ids, or has one.
func (p parameter) hasTokenIDs() bool {
	start := strings.TrimLeft(string(p.value[:min(len(p.value), 64)]), " \t\r\n")
	array := strings.TrimLeft(start, "[ \t\r\n")
	return array != start && !strings.HasPrefix(array, `"`)
}

// has reports whether a request has a member of a name, at the top or in one of the
// objects that hold parameters.
func (w *wireRequest) has(name string) bool {
	return slices.ContainsFunc([]string{"", "stream_options.", "sampling_params."}, func(object string) bool { return len(w.get(object+name).value) > 0 })
}

func checkRefuse(names []string) error {
	for _, name := range names {
		if !slices.Contains(Refusable(), name) {
			return fmt.Errorf("%q cannot be refused: use %s", shortened(name), strings.Join(Refusable(), ", "))
		}
	}
	return nil
}
