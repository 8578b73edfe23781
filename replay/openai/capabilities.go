package openai

import "cmp"

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
	inNvext       bool // ignore_eos and min_tokens are members of nvext, as for NVIDIA's servers
}

// list names what requests to an API contain, for the user.
func (c *capabilities) list(a *api, form string) []string {
	var all []string
	add := func(has bool, name string) {
		if has {
			all = append(all, name)
		}
	}
	prefix := ""
	if c.inNvext {
		prefix = "nvext."
	}
	choices := a.hasChoices()
	add(true, cmp.Or(a.limit, c.limit))
	add(c.ignoreEOS, prefix+"ignore_eos")
	add(c.minTokens, prefix+"min_tokens")
	add(choices && c.streamOptions, "stream_options")
	add(choices && c.chunkTokens&inUsage != 0, "continuous_usage_stats")
	add(choices && c.chunkTokens&inTokenIDs != 0, "return_token_ids")
	add(form == Tokens, "token ids")
	return all
}

// minimum returns the text between max_tokens and the number of min_tokens, nil if
// it is not sent, and the text after that number, which ends nvext.
func (m *members) minimum() (before, after []byte) {
	caps := m.caps
	eos, least := caps.ignoreEOS && !m.has("ignore_eos"), caps.minTokens && !m.has("min_tokens")
	switch {
	case !caps.inNvext && least:
		return []byte(`,"min_tokens":`), nil
	case !caps.inNvext:
		return nil, nil
	case least && eos:
		return []byte(`,"nvext":{"min_tokens":`), []byte(`,"ignore_eos":true}`)
	case least:
		return []byte(`,"nvext":{"min_tokens":`), []byte(`}`)
	case eos:
		return nil, []byte(`,"nvext":{"ignore_eos":true}`)
	}
	return nil, nil
}
