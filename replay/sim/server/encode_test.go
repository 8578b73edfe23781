package server

import (
	"testing"
)

// middle returns an answer of 1000 tokens whose stream has begun.
func middle(api *api, reasoning int) *answer {
	a := &answer{api: api, id: "0123456789abcdef0123456789abcdef", model: `"sim"`, wording: plainWords.wording(7, 0), reasoning: reasoning,
		tokens: 1000, reason: FinishLength}
	return a
}

func TestEncodingATokenDoesNotAllocate(t *testing.T) {
	for _, api := range apis {
		for _, reasoning := range []int{0, 999} {
			a, buf := middle(api, reasoning), make([]byte, 0, 64<<10)
			a.continuousUsage, a.stamped, a.usage = true, true, usage{prompt: 1000, cached: 500}
			if allocs := testing.AllocsPerRun(100, func() {
				for k := 1; k < 999; k++ {
					buf = a.appendToken(buf[:0], k)
				}
			}); allocs != 0 {
				t.Errorf("%s: %v allocations for 998 tokens", api.name, allocs)
			}
		}
	}
}
