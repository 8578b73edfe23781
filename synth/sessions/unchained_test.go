package sessions_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"moontide/synth/sessions"
	"moontide/trace"
)

// A note tells that block ids do not stand for their prefixes.
func TestUnchainedNote(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	noted := func(behind func(document uint64) uint64) bool {
		var rows []trace.Request
		for i := range 200 {
			documents := random.Perm(9)[:3]
			ids := []uint64{1}
			for _, d := range documents {
				ids = append(ids, behind(uint64(10+d)))
			}
			rows = append(rows, trace.Request{Timestamp: trace.Some(float64(1000 * i)), InputLength: 512 * len(ids), OutputLength: 10, HashIDs: ids})
		}
		m := fit(t, rows, sessions.Options{BlockSize: 512})
		return slices.ContainsFunc(m.Notes(), func(n string) bool { return strings.Contains(n, "chain the ids") })
	}
	if !noted(func(document uint64) uint64 { return document }) {
		t.Error("no note on hashes of documents")
	}
	next := uint64(100)
	if noted(func(uint64) uint64 { next++; return next }) {
		t.Error("a note on chained ids")
	}
}
