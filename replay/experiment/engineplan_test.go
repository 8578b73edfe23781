package experiment

import (
	"slices"
	"testing"

	"moontide/trace"
)

// A plan has what identifies the parameters: three prompt lengths at concurrency 1, a
// sweep of batches at one length, two context lengths at one of its batches, a
// saturated run.
func TestPlanEngineRuns(t *testing.T) {
	runs, err := PlanEngineRuns(EngineLimits{ISL: 2048, Concurrency: 128})
	if err != nil {
		t.Fatal(err)
	}
	var alone, batches, contexts []int
	names := map[string]bool{}
	for _, r := range runs {
		if names[r.Name] || r.Requests < r.Concurrency || r.Shows == "" {
			t.Errorf("%+v", r)
		}
		names[r.Name] = true
		if r.Concurrency == 1 {
			alone = append(alone, r.ISL)
		}
		if r.ISL == shortISL && r.OSL > fewTokens {
			batches = append(batches, r.Concurrency)
		}
		if r.Concurrency == 32 && r.OSL > fewTokens {
			contexts = append(contexts, r.ISL)
		}
	}
	slices.Sort(alone)
	slices.Sort(batches)
	slices.Sort(contexts)
	if len(runs) != 13 || len(slices.Compact(alone)) != 3 || !slices.Equal(slices.Compact(batches), []int{1, 2, 8, 32, 128}) || !slices.Equal(slices.Compact(contexts), []int{shortISL, 2048}) {
		t.Errorf("%d runs, prompts alone %v, batches %v, contexts %v", len(runs), alone, batches, contexts)
	}
}

// No run needs more KV cache than there is: preemption would hide the costs.
func TestPlanFitsTheCache(t *testing.T) {
	for _, kv := range []int{3000, 10_000, 100_000} {
		runs, err := PlanEngineRuns(EngineLimits{ISL: 1024, Concurrency: 128, KVTokens: kv})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			if need := r.Concurrency * (r.ISL + r.OSL); need > kv {
				t.Errorf("%s of %d tokens in a cache of %d", r.Name, need, kv)
			}
		}
	}
}

// Every prompt of a run is new, lengths are within their spread and average to the
// shape, and the same run has the same requests.
func TestEngineRunRequests(t *testing.T) {
	r := engineRun("x", "", 1000, 200, 4, 200, 0.5)
	var rows []trace.Request
	seen := map[uint64]bool{}
	isl, osl := 0, 0
	for row, err := range r.Rows() {
		if err != nil || row.InputLength < 500 || row.InputLength > 1500 || row.OutputLength < 100 || row.OutputLength > 300 {
			t.Fatal(row, err)
		}
		for _, id := range row.HashIDs {
			if seen[id] {
				t.Fatalf("block %d is repeated", id)
			}
			seen[id] = true
		}
		rows = append(rows, row)
		isl, osl = isl+row.InputLength, osl+row.OutputLength
	}
	if n := len(rows); n != 200 || isl/n < 980 || isl/n > 1020 || osl/n < 196 || osl/n > 204 {
		t.Errorf("%d rows, mean ISL %d, OSL %d", n, isl/n, osl/n)
	}
}
