package openai

import "slices"

// preset is what a kind of server is known to accept. Probe removes what its
// version refuses, but adds nothing.
type preset struct {
	name, title string
	endpoint    string // default; "" means Completions
	words       bool   // it takes no token ids
	keyHeader   string // Config.APIKeyHeader
	caps        capabilities
}

// vllmCapabilities are those of the default: everything.
var vllmCapabilities = capabilities{limit: maxTokens, streamOptions: true, chunkTokens: inUsage | inTokenIDs, ignoreEOS: true, minTokens: true}

// presets lists the kinds of servers. The sources are their documentation and code.
var presets = []preset{
	{name: "vllm", title: "vLLM", caps: vllmCapabilities},
	{name: "sglang", title: "SGLang", caps: capabilities{limit: maxTokens, streamOptions: true, chunkTokens: inUsage, ignoreEOS: true, minTokens: true}},
	{name: "trtllm", title: "TensorRT-LLM", caps: capabilities{limit: maxTokens, streamOptions: true, chunkTokens: inUsage, ignoreEOS: true, minTokens: true}},
	{name: "dynamo", title: "NVIDIA Dynamo", caps: capabilities{limit: maxTokens, streamOptions: true, ignoreEOS: true, minTokens: true, inNvext: true}},
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
