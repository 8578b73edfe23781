package check

import (
	"moontide/trace"
)

// declared checks the split of a prompt that its generator wrote down.
type declared struct{ found *ledger }

func (c declared) add(line int, r *trace.Request) {
	context, unique := r.ContextLen, r.UniquePromptLen
	switch {
	case context.Value > r.InputLength:
		c.found.add(ContextBeyondInput, line, "context_len %d, input_length %d", context.Value, r.InputLength)
	case context.Set && unique.Set && context.Value+unique.Value != r.InputLength:
		c.found.add(ContextSum, line, "context_len %d + unique_user_prompt_len %d = %d, input_length %d",
			context.Value, unique.Value, context.Value+unique.Value, r.InputLength)
	case unique.Value > r.InputLength:
		c.found.add(ContextSum, line, "unique_user_prompt_len %d, input_length %d", unique.Value, r.InputLength)
	}
}
