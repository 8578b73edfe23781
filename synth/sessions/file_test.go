package sessions_test

import (
	"bytes"
	"strings"
	"testing"

	"moontide/synth/sessions"
)

// smallFile is a model written by hand.
const smallFile = `{"moontide_model":3,"method":"sessions","block_size":4,"bursts":{"tick_ms":0,"offsets":[{"splits":[],"leaves":[[[5,5,-1,1,0]]]}],"gaps":[{"splits":[[0,3.5,-1,-2]],"leaves":[[[5,5,0,3,1]],[[5,5,2]]]}]},"templates":[[0,2,0]],"clients":[{
"requests":20,"sessions":10,"sessions_ahead":2,"settled_ms":1000,"templates":[[1,6]],"starts_with_template":{"splits":[],"leaves":[[10,0.5]]},
"isl":[0.5,100.5],"osl":[0.5,9.5],"first_turn_templated":[],"first_turn":[{"splits":[[0,500,-1,-2]],"leaves":[[[5,5,1,20,8]],[[5,5,7]]]},{"splits":[],"leaves":[[[10,10,1,9,3]]]}],
"continues":{"splits":[],"leaves":[[20,0.4,0.05,0,0.1,0]]},"continues_again":{"splits":[],"leaves":[]},
"later_turns":{"extend":[{"splits":[],"leaves":[[[5,5,0]]]},{"splits":[],"leaves":[[[5,5,100,900,200]]]}]},"later_lengths":{"extend":[{"splits":[],"leaves":[[[5,5,1,20,5]]]},{"splits":[],"leaves":[[[5,5,4]]]}]},
"arrivals":{"tick_ms":10,"jitter":[[5,0],[5,-1]],"segments":[[10,12,40],[10,10,50]],"by_tick":false,"steps":[{"splits":[],"leaves":[[[9,9,0.1,3,1]]]},{"splits":[],"leaves":[[[9,9,1]]]}],"mean_gap_ms":50,"period_ms":1000}}]}`

func TestReadSmallFile(t *testing.T) {
	m, err := sessions.Read(strings.NewReader(smallFile))
	if err != nil {
		t.Fatal(err)
	}
	if m.BlockSize().Tokens != 4 || m.SourceRequests() != 20 || m.Templates() != 1 {
		t.Errorf("block size %v, %d requests, %d templates", m.BlockSize(), m.SourceRequests(), m.Templates())
	}
	turns := 0
	for _, r := range draw(t, m, 1, 500) {
		if len(r.HashIDs) != (r.InputLength+3)/4 || r.OutputLength < 1 || r.OutputLength > 9 {
			t.Fatalf("%+v", r)
		}
		if r.ContextLen.Value > 8 {
			turns++
		}
	}
	if turns < 20 {
		t.Errorf("only %d later turns", turns)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`{"moontide_model":3`, `[{"moontide_model":3`, "not a JSON object"},
		{`"moontide_model":3,`, ``, `no "moontide_model"`},
		{`"moontide_model":3`, `"moontide_model":1`, "moontide_model: version 1 is too old, this is 3: fit the source again"},
		{`"moontide_model":3`, `"moontide_model":7`, "moontide_model: version 7 is not known"},
		{`"method":"sessions"`, `"method":"tree"`, `method: "tree" is not "sessions"`},
		{`"block_size":4`, `"block_size":-4`, "block_size: -4 is not in"},
		{`"block_size":4`, `"block_size":4,"first_block":2000000000000000`, "first_block: 2e+15 is not in"},
		{`"block_size":4`, `"block_size":0`, "templates: there are 1, but block_size is 0"},
		{`{"tick_ms":0`, `{"tick_ms":-1`, "bursts.tick_ms: -1 is not in"},
		{`[5,5,-1,1,0]`, `[5,5,-1e17,1,0]`, "bursts.offsets[0].leaves[0][0][2], the low end: -1e+17 is not in"},
		{`[5,5,0,3,1]`, `[5,5,-3,3,1]`, "bursts.gaps[0].leaves[0][0][2], the low end: -3 is not in"},
		{`[5,5,0,3,1]`, `[4,5,0,3,1]`, "bursts.gaps[0].leaves[0][0][0], the requests: 4 is not in 5.."},
		{`[0,3.5,-1,-2]`, `[1,3.5,-1,-2]`, "bursts.gaps[0].splits[0][0], the dimension: 1 is not in 0..0"},
		{`"gaps":[`, `"gap":[`, "bursts.gaps: no values"},
		{`"requests":20`, `"requests":4`, "requests: 4 is not in"},
		{`"sessions":10`, `"sessions":21`, "sessions: 21 is not in 1..20"},
		{`"settled_ms":1000`, `"settled_ms":-1`, "settled_ms: -1 is not in"},
		{`[0,2,0]`, `[1,2,0]`, "templates[0][0], the parent: 1 is not in 0..0"},
		{`[0,2,0]`, `[0,0,0]`, "templates[0][1], the blocks: 0 is not in"},
		{`[0,2,0]`, `[0,2000000,0]`, "templates[0][1], the blocks: 2e+06 is not in"},
		{`[0,2,0]`, `[0,2,4]`, "templates[0][2], the tail: 4 is not in 0..3"},
		{`[[1,6]]`, `[[2,6]]`, "clients[0].templates[0][0], the number: 2 is not in 1..1"},
		{`[[1,6]]`, `[[1,3]]`, "clients[0].templates[0][1], the sessions: 3 is not in 5.."},
		{`[[10,0.5]]`, `[[10,1.5]]`, "starts_with_template.leaves[0][1]: 1.5 is not in 0..1"},
		{`[[10,0.5]]`, `[[10,0.5,0.2]]`, "starts_with_template.leaves[0]: 3 numbers, want 2"},
		{`[20,0.4,0.05,0,0.1,0]`, `[20,0.4,0.5,0,0.2,0]`, "continues.leaves[0], the sum of shares: 1.1"},
		{`[20,0.4,0.05,0,0.1,0]`, `[2,0.4,0.05,0,0.1,0]`, "continues.leaves[0][0], the requests: 2 is not in 5.."},
		{`[0,500,-1,-2]`, `[3,500,-1,-2]`, "first_turn[0].splits[0][0], the dimension: 3 is not in 0..2"},
		{`[0,500,-1,-2]`, `[0,500,-1,-1]`, "first_turn[0].splits[0][3]: -1 leads back"},
		{`[0,500,-1,-2]`, `[0,500,0,-2]`, "first_turn[0].splits[0][2]: 0 leads back"},
		{`[0,500,-1,-2]`, `[0,500,-1,-3]`, "first_turn[0].splits[0][3]: -3 is not in -2..0"},
		{`[[0,500,-1,-2]]`, `[]`, "first_turn[0]: 0 splits do not make 2 leaves"},
		{`[5,5,1,20,8]`, `[5,5,1,20,80]`, "first_turn[0].leaves[0][0][4], the mean: 80 is not in 1..20"},
		{`[5,5,1,20,8]`, `[5,5,21,20,20]`, "first_turn[0].leaves[0][0][3], the high end: 20 is not in 21.."},
		{`[5,5,1,20,8]`, `[4,5,1,20,8]`, "first_turn[0].leaves[0][0][0], the requests: 4 is not in 5.."},
		{`[5,5,1,20,8]`, `[5.5,5,1,20,8]`, "5.5 is not a whole number"},
		{`[5,5,1,20,8]`, `[5,-1,1,20,8]`, "the weight: -1 is not in"},
		{`[5,5,1,20,8]`, `[5,5,1,20]`, "4 numbers, want 3 or 5"},
		{`[[5,5,7]]`, `[]`, "first_turn[0].leaves[1]: no bins"},
		{`[5,5,1,20,8]`, `[5,5,1,1e9,8]`, "the high end: 1e+09 is not in"},
		{`"first_turn":[`, `"first_turns":[`, "first_turn: no values"},
		{`"extend":`, `"grow":`, `later_turns: "grow" is none of`},
		{`"later_lengths":{"extend"`, `"later_lengths":{"edit"`, `later_lengths.extend: no values`},
		{`"period_ms":1000`, `"period_ms":-1000`, "arrivals.period_ms: -1000 is not in"},
		{`[[[5,5,4]]]`, `[[[5,5,-4]]]`, "later_lengths.extend[1].leaves[0][0][2], the low end: -4 is not in"},
		{`[10,12,40]`, `[4,12,40]`, "arrivals.segments[0][0], the requests: 4 is not in 5.."},
		{`[10,12,40]`, `[10,-1,40]`, "arrivals.segments[0][1], the times: -1 is not in 0.."},
		{`[10,12,40]`, `[10,12,0]`, "arrivals.segments[0][2], the mean: 0 is not in"},
		{`"by_tick":false`, `"by_tick":true`, "arrivals.steps: 2 values, want 1"},
		{`"isl":[0.5,100.5]`, `"isl":[0.5,0.4]`, "isl[1], the high end: 0.4 is not in 0.5.."},
		{`"osl":[0.5,9.5]`, `"osl":[-3,9.5]`, "osl[0], the low end: -3 is not in"},
		{`[[10,12,40],[10,10,50]]`, `[]`, "arrivals.segments: none, but there are steps"},
		{`[5,-1]`, `[5,-11]`, "arrivals.jitter[1][1]: -11 is not in -10..10"},
		{`"mean_gap_ms":50`, `"mean_gap_ms":NaN`, "not a model"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if !strings.Contains(smallFile, c.old) {
				t.Fatalf("the file has no %s", c.old)
			}
			_, err := sessions.Read(strings.NewReader(strings.Replace(smallFile, c.old, c.new, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Any file is either refused, or draws valid requests and survives a round trip.
func FuzzRead(f *testing.F) {
	f.Add([]byte(smallFile))
	f.Add(saved(f, fit(f, agentLoad{seed: 1, runs: 6, gap: 1000, turns: 4, call: .5, fan: 2, chain: 2, fork: .5, think: 100, tool: 10, systems: 1}.rows(), sessions.Options{})))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := sessions.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		before := 0.0
		for r, err := range m.Requests(1, 30) {
			if err != nil {
				t.Fatal(err)
			}
			if r.InputLength < 0 || r.OutputLength < 0 || r.ContextLen.Value > r.InputLength {
				t.Fatalf("%+v", r)
			}
			if !r.Timestamp.Set {
				continue
			}
			if r.Timestamp.Value < before {
				t.Fatalf("%v after %v", r.Timestamp.Value, before)
			}
			before = r.Timestamp.Value
		}
		first := saved(t, m)
		again, err := sessions.Read(bytes.NewReader(first))
		if err != nil {
			t.Fatalf("reading its own output: %v", err)
		}
		if !bytes.Equal(first, saved(t, again)) {
			t.Fatal("the file changes in a round trip")
		}
	})
}
