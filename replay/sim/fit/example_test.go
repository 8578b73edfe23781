package fit_test

import (
	"context"
	"fmt"
	"strings"

	"moontide/replay/sim/engine"
	"moontide/replay/sim/fit"
)

// A table of few rows: the costs of decoding are kept, those of prompts are fitted.
func Example() {
	const text = `isl,osl,concurrency,prompts,mean_ttft_ms,mean_e2el_ms
100,11,1,4,30,130
1000,11,1,4,75,175
`
	table, err := fit.ReadTable(strings.NewReader(text))
	if err != nil {
		panic(err)
	}
	known := engine.Deployment{Engine: engine.Config{MaxBatchedTokens: 8192, Costs: engine.Costs{Step: 10 * engine.Millisecond}}}
	result, err := fit.Fit(context.Background(), table.Measurements, fit.Options{Template: known, Refit: true})
	if err != nil {
		panic(err)
	}
	for _, e := range result.Estimates {
		if e.Name == "prefill-per-token" {
			fmt.Printf("a prompt token takes about 50 us: %v\n", e.Value > 40*engine.Microsecond && e.Value < 60*engine.Microsecond)
		}
	}
	// Output:
	// a prompt token takes about 50 us: true
}
