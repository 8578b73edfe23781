package prompt_test

import (
	"fmt"

	"moontide/replay/prompt"
	"moontide/trace"
)

// Two turns of a conversation share their first block.
func ExampleSource_Prompt() {
	source := prompt.Source{Seed: 1, BlockSize: 4}
	first := source.Prompt(trace.Request{InputLength: 6, HashIDs: []uint64{7, 8}}, 0)
	second := source.Prompt(trace.Request{InputLength: 9, HashIDs: []uint64{7, 9, 10}}, 1)
	fmt.Printf("%s\n", first.AppendWords(nil))
	fmt.Printf("%s\n", second.AppendWords(nil))
	fmt.Printf("%s\n", first.AppendJSONTokens(nil))
	// Output:
	// kin deck copy tool space bone
	// kin deck copy tool play block head leaf sit
	// [13657,6956,6186,26779,24361,4065]
}
