package sessions_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"moontide/synth/sessions"
)

// smallFile is a model written by hand, as it is before it is compressed: two sessions, the
// first with a turn that extends the one before and one that waits for both.
const smallFile = `{"moontide_model":5,"block_size":4,"first_block":10,"graph":true,"clock":{"gaps_ms":[500,100,400],"whole_ms":true},
"reasoning_key":"reasoning_tokens","clients":[[],[{"key":"user","value":"\"ann\""}]],"prefixes":[{},{"blocks":2,"template":true}],"sessions":[
[{"prefix":1,"tokens":6,"osl":5,"client":1,"agent":1},{"arrival":1,"timing":1,"delay":9,"kind":"think","prefix":1,"tokens":12,"osl":6,"parent":1,"shared":1,"reasoned":5001,"client":1,"agent":1,"waits":[1]},
{"timing":2,"delay":20,"kind":"tool","tokens":9,"osl":7,"agent":2,"named":true,"waits":[1,2]}],
[{"arrival":2,"prefix":1,"tokens":3,"osl":8,"agent":1}]]}`

func TestReadSmallFile(t *testing.T) {
	m, err := sessions.Read(strings.NewReader(smallFile))
	if err != nil {
		t.Fatal(err)
	}
	if m.BlockSize().Tokens != 4 || m.SourceRequests() != 4 || len(m.Clients()) != 2 {
		t.Errorf("block size %v, %d requests, clients %v", m.BlockSize(), m.SourceRequests(), m.Clients())
	}
	want := `{"timestamp": 0, "input_length": 14, "output_length": 5, "hash_ids": [10, 11, 12, 13], "session_id": "s1", "request_id": "s1:0", "context_len": 0, "unique_user_prompt_len": 14, "user": "ann"}
`
	if got := string(lines(draw(t, m, 1, 1))); got != want {
		t.Errorf("drew\n%s", got)
	}
	waits := 0
	for _, r := range draw(t, m, 1, 400) {
		if len(r.After) == 2 && !r.Timestamp.Set && r.Delay.Value > 10 {
			waits++
		}
	}
	if waits < 90 {
		t.Errorf("%d rows wait for two others, want 100", waits)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`{"moontide_model":5`, `[{"moontide_model":5`, "not a model"},
		{`"moontide_model":5,`, ``, `no "moontide_model"`},
		{`"moontide_model":5`, `"moontide_model":4`, "version 4 of models is not 5: fit the source again"},
		{`"block_size":4`, `"block_size":0`, "blocks of a prompt: 0 is not in 2.."},
		{`[500,100,400]`, `[]`, "gaps_ms, the number: 0 is not in"},
		{`[500,100,400]`, `[500,100,-400]`, "gaps_ms: -400 is not in"},
		{`[500,100,400]`, `[500,1e15,1e15]`, "gaps_ms, the sum: 2e+15 is not in"},
		{`[500,100,400]`, `[500,100]`, "arrival: 2 is not in 0..1"},
		{`"arrival":1,`, `"arrival":-1,`, "arrival: -1 is not in 0..2"},
		{`reasoning_tokens`, `input_length`, `reasoning_key: "input_length" counts no reasoning`},
		{`"\"ann\""`, `"true"`, `clients: "true" of "user" is no name`},
		{`"key":"user"`, `"key":"input_length"`, `clients: "\"ann\"" of "input_length" is no name`},
		{`[],[{"key":"user","value":"\"ann\""}]`, ``, "clients, the number: 0 is not in"},
		{`{"blocks":2`, `{"parent":1,"blocks":2`, "parent of a prefix: 1 is not in 0..0"},
		{`"tokens":6`, `"tokens":-9`, "tokens: -9 is not in -8.."},
		{`"tokens":6`, `"tokens":-4`, "blocks of a prompt: 1 is not in 2.."},
		{`"delay":9`, `"delay":1e300`, "delay: 1e+300 is not in"},
		{`[{"prefix":1`, `[{"timing":2,"prefix":1`, "timing: a turn that waits for no other has no timestamp"},
		{`"think"`, `"sleep"`, `kind: "sleep" is not that of a delay`},
		{`"delay":9,"kind":"think","prefix":1`, `"delay":9,"prefix":2`, "prefix: 2 is not in 0..1"},
		{`"delay":9,"kind":"think","prefix":1`, `"delay":9`, "prefix of a turn with shared blocks: 0 is not in 1..1"},
		{`"tokens":6`, `"tokens":90000000`, "blocks of a prompt: 22500002 is not in"},
		{`"parent":1`, `"parent":2`, "parent: 2 is not in 0..1"},
		{`"shared":1`, `"shared":9`, "shared: 9 is not in 1..2"},
		{`"parent":1,`, ``, "shared: 1 is not in 0..0"},
		{`"waits":[1,2]`, `"waits":[1,3]`, "waits: 3 is not in 1..2"},
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
	// A file that grows without end when it is decompressed.
	var part bytes.Buffer
	z := gzip.NewWriter(&part)
	z.Write(make([]byte, 10<<20))
	z.Close()
	if _, err := sessions.Read(bytes.NewReader(bytes.Repeat(part.Bytes(), 14))); err == nil || !strings.Contains(err.Error(), "more than 134217728 bytes") {
		t.Errorf("error %v", err)
	}
}

// Any file is either refused, or draws valid requests and survives a round trip.
func FuzzRead(f *testing.F) {
	f.Add([]byte(smallFile))
	f.Add(saved(f, fit(f, workloads["agents"].rows()[:50], sessions.Options{BlockSize: blockSize})))
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
