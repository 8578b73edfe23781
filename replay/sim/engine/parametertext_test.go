package engine

import (
	"reflect"
	"testing"
	"time"

	"moontide/trace/routing"
)

// A parameter that is set from its text has the value that the text is of.
func TestParameterText(t *testing.T) {
	of := Deployment{
		Engines: 3, Routing: routing.Prefix, Latency: 17300 * time.Microsecond,
		Transfer: Transfer{Base: time.Millisecond, PerToken: 1_234_567, Sharing: Batch, FirstTokenAfter: true},
		Engine: Config{
			MaxSeqs: 5, MaxBatchedTokens: 6, BlockSize: 7, KVBlocks: 8, MaxModelLen: 9, Ranks: 10, AsyncScheduling: true, NoPrefixCache: true, PhasedTPOT: time.Second,
			Costs: Costs{Step: 1, PrefillStep: 2, PrefillToken: 3_000_001, Attention: 4, Sequence: 5, ContextToken: 46_700, Decode: DecodeTable{{1, 0}, {8, Millisecond}}},
		},
	}
	var got, none Deployment
	for _, p := range Parameters {
		if err := p.Set(&got, p.Text(&of)); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if !p.IsZero(&none) || p.IsZero(&of) && p.Name != "prefill-engines" && p.Name != "decode-engines" {
			t.Errorf("%s of %q: IsZero is wrong", p.Name, p.Text(&of))
		}
		if found, ok := FindParameter(p.Name); !ok || found.Usage != p.Usage {
			t.Errorf("%s is not found", p.Name)
		}
	}
	if !reflect.DeepEqual(got, of) {
		t.Errorf("%+v, want %+v", got, of)
	}
	for name, text := range map[string]string{"engines": "1.5", "no-prefix-cache": "so", "step-base": "4", "request-latency": "x", "decode-table": "1", "transfer-sharing": "some", "routing": "some"} {
		p, _ := FindParameter(name)
		if err := p.Set(&got, text); err == nil {
			t.Errorf("%s accepts %q", name, text)
		}
	}
}
