package prompt_test

import (
	_ "embed"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/replay/prompt"
	"moontide/trace"
)

// The values were computed by an independent program in another language, from the
// format in the package comment. They must never change, because prompts are the
// same in all versions.
func TestGolden(t *testing.T) {
	run := prompt.Source{Seed: 7, Salt: "run-1", BlockSize: 4}
	wide := run
	wide.Low, wide.High = 16, 200_000
	for _, tc := range []struct {
		name   string
		prompt prompt.Prompt
		tokens []uint32
		words  string
	}{
		{
			"defaults", prompt.Source{}.Prompt(trace.Request{InputLength: 8, HashIDs: []uint64{0}}, 0),
			[]uint32{19935, 17055, 19108, 2943, 10894, 8566, 14064, 26031},
			"plant name park bar gray falls later that",
		},
		{
			"two blocks and a tail of the row",
			run.Prompt(trace.Request{InputLength: 10, HashIDs: []uint64{3, math.MaxUint64}}, 5),
			[]uint32{14761, 27860, 6523, 1565, 22416, 12919, 13440, 16849, 22876, 22797},
			"lion vest cross aim rows info join move score say",
		},
		{
			"no ids, another range", wide.Prompt(trace.Request{InputLength: 10}, 5),
			[]uint32{178121, 102195, 40953, 84974, 90978, 37547, 19345, 63225, 150873, 150333},
			"top mars deal jest leaf cover bits game score say",
		},
		{
			"filler", run.Filler("probe", 8),
			[]uint32{4389, 28056, 20358, 2854, 9842, 23132, 6618, 21394},
			"boy visit post ban found sent curl ray",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.tokens, tc.prompt.AppendTokens(nil)); diff != "" {
				t.Errorf("token ids (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.words, string(tc.prompt.AppendWords(nil))); diff != "" {
				t.Errorf("words (-want +got):\n%s", diff)
			}
		})
	}
}
