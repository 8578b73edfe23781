package openai

import (
	"cmp"
	"slices"
)

// preset is what a kind of server is known to accept. Probe removes what its
// version refuses, but adds nothing.
type preset struct {
	name, title string
	endpoint    string // default; "" means Completions
	words       bool   // it takes no token ids
	keyHeader   string // the header that has the API key; "" means a bearer token
	caps        capabilities
}

// vllmCapabilities are those of the default: everything.
var vllmCapabilities = capabilities{limit: maxTokens, streamOptions: true, chunkTokens: inUsage | inTokenIDs, ignoreEOS: true, minTokens: true}

// presets lists the kinds of servers. The sources are their documentation and code.
var presets = []preset{
	{name: "vllm", title: "vLLM", caps: vllmCapabilities},
	{name: "sglang", title: "SGLang", caps: capabilities{limit: maxTokens, streamOptions: true, chunkTokens: inUsage, ignoreEOS: true, minTokens: true}},
	{name: "trtllm", title: "TensorRT-LLM", caps: capabilities{limit: maxTokens, streamOptions: true, chunkTokens: inUsage, ignoreEOS: true, minTokens: true}},
	{name: "dynamo", title: "NVIDIA Dynamo", caps: capabilities{limit: maxTokens, streamOptions: true, ignoreEOS: true, minTokens: true}},
	{name: "llamacpp", title: "llama.cpp", caps: capabilities{limit: maxTokens, streamOptions: true, ignoreEOS: true}},
	{name: "tgi", title: "Text Generation Inference", endpoint: Chat, words: true, caps: capabilities{limit: maxTokens, streamOptions: true}},
	{name: "openai", title: "OpenAI", endpoint: Chat, words: true, caps: capabilities{limit: maxCompletionTokens, streamOptions: true}},
	{name: "anthropic", title: "Anthropic", endpoint: Messages, words: true, keyHeader: "x-api-key"},
	{name: "azure", title: "Azure OpenAI", endpoint: Chat, words: true, keyHeader: "api-key", caps: capabilities{limit: maxCompletionTokens, streamOptions: true}},
}

// Servers returns all values of Config.Server, and what they stand for.
func Servers() (names, titles []string) {
	for _, p := range presets {
		names, titles = append(names, p.name), append(titles, p.title)
	}
	return names, titles
}

// presetOf returns the preset of a name, the first one for "", nil if there is none.
func presetOf(name string) *preset {
	if name == "" {
		return &presets[0]
	}
	if i := slices.IndexFunc(presets, func(p preset) bool { return p.name == name }); i >= 0 {
		return &presets[i]
	}
	return nil
}

// Names of the member that limits the output length.
const (
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens" // OpenAI's newer models
)

// capabilities are the optional members of requests that the servers accept.
// They begin with those of a preset, and Probe removes what is refused.
type capabilities struct {
	limit         string        // member that limits the output length
	streamOptions bool          // stream_options, without which many servers report no usage
	chunkTokens   tokenEvidence // asked for in each chunk
	ignoreEOS     bool
	minTokens     bool
}

// list names what requests to an API contain, for the user.
func (c *capabilities) list(a *api, form string) []string {
	var all []string
	add := func(has bool, name string) {
		if has {
			all = append(all, name)
		}
	}
	choices := a.hasChoices()
	add(true, cmp.Or(a.limit, c.limit))
	add(c.ignoreEOS, "ignore_eos")
	add(c.minTokens, "min_tokens")
	add(choices && c.streamOptions, "stream_options")
	add(choices && c.chunkTokens&inUsage != 0, "continuous_usage_stats")
	add(choices && c.chunkTokens&inTokenIDs != 0, "return_token_ids")
	add(form == Tokens, "token ids")
	return all
}
