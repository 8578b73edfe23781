package experiment_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"moontide/replay/experiment"
	"moontide/replay/openai"
	"moontide/replay/prompt"
	"moontide/replay/settings"
	"moontide/replay/sim/engine"
	"moontide/trace"
)

// Agents with sub-agents, whose contexts grow, are compacted and rewritten: over HTTP and
// in virtual time, with live answers and without, every request has as many cached tokens
// as the run predicts. Package run compares its predictions with lists of tokens.
func TestCachedTokensOfAgents(t *testing.T) {
	for _, block := range []struct{ trace, server int }{{8, 4}, {5, 3}, {4, 16}} {
		for _, answers := range []string{openai.AnswersFromTrace, openai.LiveAnswers} {
			for _, virtual := range []bool{false, true} {
				t.Run(fmt.Sprintf("blocks=%v/%s/virtual=%v", block, answers, virtual), func(t *testing.T) {
					t.Parallel()
					all := agents(uint64(block.trace), 60, block.trace)
					engines, form := engine.Default(), openai.Config{Answers: answers, Prompt: openai.Tokens, Source: prompt.Source{Low: 1 << 16, High: 1 << 30}}
					engines.Engine.BlockSize, engines.Engine.Costs = block.server, engine.Costs{}
					if virtual { // the order of requests is that of their times
						engines.Engine.Costs.Step, form = engine.Millisecond, openai.Config{Answers: answers}
					}
					result, err := experiment.Run(t.Context(), experiment.Config{
						Requests: trace.FromSlice(all),
						Settings: settings.Settings{
							Output: settings.Output{Dir: filepath.Join(t.TempDir(), "run")},
							Trace:  settings.Trace{BlockSize: block.trace},
							Client: form,
							Closed: true, MaxConcurrency: 1, CacheGenerated: true, Virtual: virtual,
							Engines: engines,
						},
					})
					if err != nil {
						t.Fatal(err)
					}
					if p := result.Metrics.Cache.Prediction; p.Predicted == 0 || p.Predicted != p.Measured || p.Equal != len(all) || result.Metrics.Completed != len(all) {
						t.Errorf("%d cached tokens predicted, %d measured; %d of %d requests as predicted", p.Predicted, p.Measured, p.Equal, len(all))
					}
				})
			}
		}
	}
}

// agents returns the rows of sessions. All begin with the same block, and a third of the
// turns are those of sub-agents, which continue a row of their parent and are joined.
func agents(seed uint64, sessions, block int) (all []trace.Request) {
	rng, next := rand.New(rand.NewPCG(seed, 1)), uint64(1)
	add := func(session string, isl int, shared []uint64, after ...string) trace.Request {
		ids := slices.Clone(shared)
		for len(ids)*block < isl {
			next++
			ids = append(ids, next)
		}
		row := trace.Request{ID: fmt.Sprint("r", len(all)), SessionID: session, After: after, InputLength: isl, OutputLength: rng.IntN(7), HashIDs: ids}
		all = append(all, row)
		return row
	}
	turn := func(session string, last trace.Request, after ...string) trace.Request {
		keep, isl := last.InputLength/block, last.InputLength+last.OutputLength+1+rng.IntN(3*block)
		switch rng.IntN(6) {
		case 0: // compacted
			keep = rng.IntN(keep + 1)
			isl = keep*block + 1 + rng.IntN(block)
		case 1: // rewritten
			keep = rng.IntN(keep + 1)
		case 2: // hardly room for the answer, or none
			isl = last.InputLength + 1 + rng.IntN(last.OutputLength+1)
		}
		return add(session, isl, last.HashIDs[:min(keep, isl/block)], after...)
	}
	for n := range sessions {
		session := fmt.Sprint("s", n)
		last := add(session, block+1+rng.IntN(4*block), []uint64{1})
		for i := range 1 + rng.IntN(4) {
			if rng.IntN(2) == 0 {
				last = turn(session, last)
				continue
			}
			sub := turn(fmt.Sprintf("%s.%d", session, i), last, last.ID)
			last = turn(session, last, last.ID, sub.ID)
		}
	}
	return all
}
