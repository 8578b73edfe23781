package check

import (
	"slices"

	"moontide/trace"
	"moontide/trace/jsonscan"
	"moontide/trace/log"
)

// longLength is the longest context of most models in tokens.
const longLength = 1_000_000

// lengths checks ISL and OSL.
type lengths struct{ found *findings }

func (c *lengths) add(line int, r *trace.Request) {
	c.declared(line, r)
	c.reasoning(line, r.OutputLength, "", r.Extra)
	if r.InputLength == 0 {
		c.found.add(ZeroInput, line, "input_length 0")
	}
	if r.OutputLength == 0 {
		c.found.add(ZeroOutput, line, "output_length 0")
	}
	if max(r.InputLength, r.OutputLength) > longLength {
		c.found.add(LongLength, line, "input_length %d, output_length %d", r.InputLength, r.OutputLength)
	}
}

// declared checks the context length and unique prompt length of a row.
func (c *lengths) declared(line int, r *trace.Request) {
	context, unique := r.ContextLen, r.UniquePromptLen
	switch {
	case context.Set && unique.Set && context.Value+unique.Value != r.InputLength:
		c.found.add(ContextSum, line, "context_len %d + unique_user_prompt_len %d = %d, input_length %d",
			context.Value, unique.Value, context.Value+unique.Value, r.InputLength)
	case context.Value > r.InputLength:
		c.found.add(ContextSum, line, "context_len %d, input_length %d", context.Value, r.InputLength)
	case unique.Value > r.InputLength:
		c.found.add(ContextSum, line, "unique_user_prompt_len %d, input_length %d", unique.Value, r.InputLength)
	}
}

// reasoning checks the reasoning tokens among the unknown keys of a row, and of its
// object recorded.
func (c *lengths) reasoning(line, output int, prefix string, object []byte) {
	if len(object) == 0 {
		return
	}
	_ = jsonscan.Members(object, func(name []byte, _ int, raw []byte) error {
		if string(name) == log.RecordedKey && prefix == "" && raw[0] == '{' {
			c.reasoning(line, output, log.RecordedKey+".", raw)
		} else if slices.Contains(log.ReasoningKeys, string(name)) {
			if _, ok := log.ReasoningTokens(raw, output); !ok {
				c.found.add(BadReasoning, line, "%s%s %.60s, output_length %d", prefix, name, raw, output)
			}
		}
		return nil
	})
}
