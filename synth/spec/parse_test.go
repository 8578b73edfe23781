package spec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"moontide/trace"
	"moontide/traces"
)

// files are those that specs in tests may name.
var files = fstest.MapFS{
	"dir/small.jsonl": {Data: []byte(`{"timestamp": 1000, "input_length": 10, "output_length": 1}
{"timestamp": 1500, "input_length": 20, "output_length": 2}
{"timestamp": 4000, "input_length": 30, "output_length": 3}
`)},
	"dir/numbers.txt": {Data: []byte("5 6\n7\t8\n")},
	"dir/word.txt":    {Data: []byte("5 six\n")},
	"dir/empty.txt":   {Data: []byte(" \n")},
	"dir/back.jsonl":  {Data: []byte(`{"timestamp": 9, "input_length": 1, "output_length": 1}` + "\n" + `{"timestamp": 1, "input_length": 1, "output_length": 1}` + "\n")},
	"dir/bad.jsonl":   {Data: []byte(`{"timestamp": 9}` + "\n")},
	"flag.txt":        {Data: []byte("9\n")},
}

func openTest(path string) (io.ReadCloser, error) { return files.Open(path) }

var testOptions = Options{Name: "d.yaml", Open: openTest, Folder: "dir"}

func parse(t testing.TB, text string, settings ...Setting) *Spec {
	t.Helper()
	o := testOptions
	o.Settings = settings
	d, err := Parse([]byte(text), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return d
}

func draw(t testing.TB, text string, settings ...Setting) []trace.Request {
	t.Helper()
	rows, err := trace.Collect(parse(t, text, settings...).Requests())
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestInvalidSpecs(t *testing.T) {
	const ok = "isl: 10\nosl: 5\n"
	for _, tc := range []struct{ text, want string }{
		// YAML
		{"isl: [1", "d.yaml:1:6: unclosed ["},
		{"isl: {law: fixed", "d.yaml:1:6: unclosed {"},
		{"isl: ]", "d.yaml:1:6: unmatched closing bracket"},
		{"isl: 1\nisl: 2", `d.yaml:2:1: "isl" is set twice`},
		{"\tisl: 3", "d.yaml:1:4: tab in the indentation: use spaces"},
		{ok + "sessions:\n\tturns: 3", "d.yaml:4:1: tab in the indentation: use spaces"},
		{"isl: `3`", "d.yaml:1:6: a value cannot start with this character: quote it"},
		{"isl: %3", "d.yaml:1:6: a value cannot start with %: quote it"},
		{"isl 3000\nosl: 5", "d.yaml:1:1: not a key: want key: value"},
		{"isl: 3000\nosl", "d.yaml:2:1: not a key: want key: value"},
		{"isl: \"3", "d.yaml:1:6: unclosed quote"},
		{"isl: 3\n osl: 5", "d.yaml:1:6: key inside a value: is a line indented too far"},
		{"isl:\n  law: fixed\n value: 3", "d.yaml:3:2: the indentation matches nothing above"},
		{"isl: \"\\q\"", "d.yaml:1:8: not YAML: found unknown escape character"},
		{"- 1", "d.yaml:1:1: the spec is a list, want a mapping"},
		{ok + "---\nisl: 3", "d.yaml: more than one document"},
		{"isl: &a 3\nosl: *a", "d.yaml:1:6: anchors, aliases and tags"},
		{"isl: !!int 3", "d.yaml:1:6: anchors, aliases and tags"},
		{"1: 3", "d.yaml:1:1: a key is not plain text"},
		{"<<: {isl: 3}", "d.yaml:1:1: a key is not plain text"},
		{strings.Repeat("[", 100), "d.yaml: more than 32 nested brackets"},
		{strings.Repeat("- ", 100), "d.yaml:1:67: more than 32 nested lists and mappings"},
		{strings.Repeat("#", 5000), "d.yaml: a line is longer than 4 KiB"},
		{strings.Repeat("#\n", 40_000), "d.yaml: longer than 64 KiB"},
		// keys and values
		{"", "d.yaml: isl is missing"},
		{"isl: 10", "d.yaml:1:1: osl is missing"},
		{ok + "rat: 3", `d.yaml:3:1: "rat" is not a known key: want one of num_requests, duration`},
		{ok + "sessions:\n  turns: 3\n  thnk: 1", `d.yaml:5:3: "sessions.thnk" is not a known key: want one of turns, think_time`},
		{ok + "rate:", "d.yaml:3:7: rate has no value"},
		{ok + "rate: fast", `d.yaml:3:7: rate is not a number: "fast"`},
		{ok + "rate: 0", "d.yaml:3:7: rate is out of range: 0, want from 0.000001 to 1000000"},
		{ok + "rate: -2", "d.yaml:3:7: rate is out of range: -2"},
		{ok + "rate: NaN", `d.yaml:3:7: rate is not a number: "NaN"`},
		{ok + "rate: .inf", `d.yaml:3:7: rate is not a number: ".inf"`},
		{ok + "num_requests: 0", "d.yaml:3:15: num_requests is out of range: 0, want from 1 to"},
		{ok + "num_requests: 1.5", "d.yaml:3:15: num_requests is not a whole number: 1.5"},
		{ok + "duration: soon", `d.yaml:3:11: duration is not a time (90s, 10m, or seconds): "soon"`},
		{ok + "duration: -1s", "d.yaml:3:11: duration is out of range: -1s, want from 0.000001 to 3162240000 seconds"},
		{ok + "block_size: 0", "d.yaml:3:13: block_size is out of range: 0, want from 1 to 100000000"},
		{ok + "seed: -1", `d.yaml:3:7: seed is not a whole number from 0 to 2^64-1: "-1"`},
		{ok + "seed: [1]", "d.yaml:3:7: seed is a list, want a single value"},
		// laws
		{"isl: 0\nosl: 5", "d.yaml:1:6: isl is out of range: 0, want from 1 to 100000000"},
		{"isl: 1e9\nosl: 5", "d.yaml:1:6: isl is out of range: 1e9, want from 1 to 100000000"},
		{"isl: 5000000\nosl: 5\nblock_size: 1", "d.yaml:1:6: isl is out of range: 5000000, want from 1 to 4194304"},
		{"isl: fixed:2.5\nosl: 5", "d.yaml:1:6: isl is not a whole number: 2.5"},
		{"isl: {law: fixed, value: 2.5}\nosl: 5", "d.yaml:1:26: isl.value is not a whole number: 2.5"},
		{ok + "sessions: {turns: 2, think_time: {law: uniform, min: 9s, max: 3s}}", "sessions.think_time has min 9 above max 3 seconds"},
		{ok + "sessions: {turns: 2, think_time: 'normal:1s:1ms:min=9s'}", "for values from 9 to 31622400 seconds: want bounds"},
		{"isl: 2.5\nosl: 5", "d.yaml:1:6: isl is not a whole number: 2.5"},
		{"isl: pareto:3\nosl: 5", `d.yaml:1:6: isl is neither a number nor a distribution: "pareto:3", want one of fixed, uniform`},
		{"isl: {law: pareto}\nosl: 5", `d.yaml:1:12: "pareto" is not a distribution: want one of fixed, uniform`},
		{"isl: {mean: 3}\nosl: 5", "d.yaml:1:6: isl has no distribution: want distribution: with one of fixed"},
		{"isl: [3]\nosl: 5", "d.yaml:1:6: isl is a list, want a number or a distribution"},
		{"isl: uniform:100\nosl: 5", "d.yaml:1:6: isl is uniform and needs min and max"},
		{"isl: uniform:200:100\nosl: 5", "d.yaml:1:6: isl has min 200 above max 100"},
		{"isl: {law: uniform, min: 200, max: 100}\nosl: 5", "d.yaml:1:26: isl has min 200 above max 100"},
		{"isl: uniform:1:2:3\nosl: 5", `d.yaml:1:6: isl has too many parameters: "uniform:1:2:3", want uniform:min:max`},
		{"isl: uniform:1:2:min=3\nosl: 5", "d.yaml:1:6: min of isl is set twice"},
		{"isl: normal:100\nosl: 5", "d.yaml:1:6: isl needs cv or std; the short form is normal:mean:std"},
		{"isl: {law: normal, mean: 100, std: 1, cv: 1}\nosl: 5", "d.yaml:1:36: isl.cv and isl.std are both set"},
		{"isl: {law: lognormal, std: 1}\nosl: 5", "d.yaml:1:6: isl needs mean"},
		{"isl: lognormal:-5:1\nosl: 5", "d.yaml:1:6: isl.mean is out of range: -5"},
		{"isl: lognormal:5:0\nosl: 5", "d.yaml:1:6: isl.cv is out of range: 0, want from 0.0001 to 100"},
		{"isl: {law: weibull, mean: 100, std: 9000}\nosl: 5", "d.yaml:1:37: isl has std / mean out of range: 90, want from 0.01 to 20"},
		{"isl: normal:1000:10:max=500\nosl: 5", "d.yaml:1:6: isl has a probability of 0 for values from 1 to 500: want bounds that the distribution reaches"},
		{"isl: {law: normal, mean: 9, std: 1, shape: 3}\nosl: 5", `d.yaml:1:37: "isl.shape" is not a known key: want one of distribution, min, max, mean, std, cv`},
		{"isl: {law: mixture}\nosl: 5", "d.yaml:1:6: isl needs of: a list of 1 to 100 distributions"},
		{"isl: {law: mixture, of: [3]}\nosl: 5", "d.yaml:1:26: a part of isl is a single value, want a distribution with its share"},
		{"isl: {law: mixture, of: [{law: fixed, value: 3}]}\nosl: 5", "d.yaml:1:26: isl needs share"},
		{"isl: {law: mixture, of: [{share: 0.3, law: fixed, value: 3}, {share: 0.6, law: fixed, value: 4}]}\nosl: 5", "d.yaml:1:25: the shares of isl add up to 0.9, want 1"},
		{"isl: {law: mixture, of: [{share: 1, law: mixture, of: []}]}\nosl: 5", "d.yaml:1:42: isl has a nested mixture"},
		{ok + "correlation: 2", "d.yaml:3:14: correlation is out of range: 2, want from -1 to 1"},
		{ok + "correlation: 0.5", "d.yaml:3:14: correlation needs an isl and an osl that vary"},
		{"isl: 3\nlengths: small.jsonl", "d.yaml:2:10: isl and lengths are both set: want only one"},
		{"isl: 3\nunique_isl: 3\nosl: 1", "d.yaml:2:13: isl and unique_isl are both set"},
		// files
		{"isl: file:none.txt\nosl: 5", "d.yaml:1:6: isl: open dir/none.txt: file does not exist"},
		{"isl: file:word.txt\nosl: 5", `d.yaml:1:6: isl: dir/word.txt: value 2 is not a number: "six"`},
		{"isl: file:empty.txt\nosl: 5", "d.yaml:1:6: isl holds no values"},
		{"isl: file:bad.jsonl\nosl: 5", "d.yaml:1:6: isl: dir/bad.jsonl:1: no input_length"},
		{"isl: file:small.jsonl:min=11\nosl: 5", "d.yaml:1:6: isl: open dir/small.jsonl:min=11: file does not exist"},
		{"isl: {law: file, path: small.jsonl, min: 31}\nosl: 5", "d.yaml:1:6: isl has a probability of 0 for values from 31 to"},
		{ok + "sessions: {turns: 'file:small.jsonl'}", "dir/small.jsonl is a trace, which has no sessions.turns: want plain numbers"},
		{"lengths: {file: small.jsonl, min_isl: 50}", "d.yaml:1:17: lengths.file has no row within the bounds (3 rows read)"},
		{"lengths: {file: small.jsonl, min_isl: 50, max_isl: 40}", "d.yaml:1:39: lengths has min_isl 50 above max_isl 40"},
		// arrivals
		{ok + "arrival: uniform", `d.yaml:3:10: arrival is not one of constant, poisson, gamma, weibull, replay: "uniform"`},
		{ok + "arrival: gamma", "d.yaml:3:10: arrival is gamma and needs cv"},
		{ok + "arrival: {process: poisson, cv: 2}", "d.yaml:3:33: arrival.cv applies to gamma and weibull arrivals, not to poisson"},
		{ok + "arrival: {process: weibull, burstiness: 2}", "d.yaml:3:41: arrival.burstiness applies to gamma arrivals, not to weibull"},
		{ok + "arrival: {process: constant, burstiness: 2}", "d.yaml:3:42: arrival.burstiness applies to gamma arrivals, not to constant"},
		{ok + "arrival: {process: exponential}", `arrival.process is not one of constant, poisson`},
		{ok + "arrival: {process: gamma}", "arrival.process is gamma and needs cv"},
		{ok + "arrival: {cv: 2, burstiness: 2}", "d.yaml:3:30: arrival.cv and arrival.burstiness are both set"},
		{ok + "arrival: replay", "d.yaml:3:10: arrival is replay and needs file: a trace"},
		{ok + "arrival: {process: gamma, cv: 1, file: small.jsonl}", "d.yaml:3:40: arrival.file applies to replay, not to gamma"},
		{ok + "arrival: {file: back.jsonl}", "d.yaml:3:17: arrival.file: dir/back.jsonl:2: goes back in time, to -0.008 s: sort the trace first"},
		{ok + "arrival: {file: small.jsonl, bursts: {on: 1, off: 1}}", "bursts and cycle do not apply to replayed arrivals"},
		{ok + "arrival: {cycle: {amplitude: 2}}", "d.yaml:3:30: arrival.cycle.amplitude is out of range: 2, want from 0 to 1"},
		{ok + "rate: [{for: 1, at: 1}]\narrival: {cycle: {}}", "d.yaml:4:18: arrival.cycle needs a constant rate (its mean)"},
		{ok + "arrival: {bursts: {on: 1}}", "d.yaml:3:19: arrival.bursts needs on and off"},
		{ok + "rate: 0.001\narrival: {bursts: {on: 0.01, off: 0.01}}", "d.yaml:4:19: arrival.bursts switch 5e+04 times per request"},
		{ok + "rate: []", "d.yaml:3:7: rate has 0 phases, want 1 to 1000"},
		{ok + "rate: [{at: 1}]", "d.yaml:3:8: a phase needs for and at, or for and to"},
		{ok + "rate: [{for: 1, to: 1}]", "d.yaml:3:8: the first phase has no previous rate"},
		{ok + "rate: [{for: 1, at: 1, to: 2}]", "rate.phases.at and rate.phases.to are both set"},
		{ok + "rate: [{for: 0, at: 1}]", "d.yaml:3:14: rate.phases.for is out of range: 0"},
		{ok + "rate: [{for: 1, at: 0}]", "d.yaml:3:7: the rate is 0 in every phase"},
		{ok + "rate: [{for: 1, from: 5, to: 0}]\nnum_requests: 100", "d.yaml:4:15: num_requests may never be reached because the rate ends at 0"},
		{ok + "rate: {repeat: true}", "d.yaml:3:7: rate.phases is missing or not a list"},
		{ok + "rate: {phases: [{for: 1, at: 1}], repeat: yes}", `d.yaml:3:43: rate.repeat is not one of true, false: "yes"`},
		// sharing
		{ok + "shared: {count: 2}", "d.yaml:3:9: shared.tokens is missing"},
		{ok + "shared: {tokens: 11}", "d.yaml:1:6: isl includes the shared prefix but can be as short as 10 tokens, less than the prefix's 11: raise min"},
		{"isl: lognormal:500:1\nosl: 1\nshared: {tokens: 100}", "d.yaml:1:6: isl includes the shared prefix but can be as short as 1 tokens, less than the prefix's 100"},
		{"lengths: small.jsonl\nshared: {tokens: 100}", "d.yaml:1:10: lengths includes the shared prefix but can be as short as 10 tokens, less than the prefix's 100"},
		{"unique_isl: 60000000\nosl: 1\nshared: {tokens: 60000000}", "d.yaml:1:13: a prompt can have 120000000 tokens (60000000 of them shared), more than 100000000"},
		{ok + "shared: {count: 0, tokens: 5}", "d.yaml:3:17: shared.count is out of range: 0"},
		{ok + "shared: [{count: 1000, tokens: 1}, {count: 1000, tokens: 1}]", "d.yaml:3:44: more than 1000000 shared prefixes (1000000 at this level)"},
		{ok + "shared: {tokens: 5, zipf: -1}", "d.yaml:3:27: shared.zipf is out of range: -1, want from 0 to 100"},
		// sessions
		{ok + "sessions: {think_time: 1s}", "d.yaml:3:11: sessions.turns is missing"},
		{ok + "sessions: {turns: 0}", "d.yaml:3:19: sessions.turns is out of range: 0, want from 1 to 10000"},
		{ok + "sessions: {turns: 2, think_time: -3s}", "d.yaml:3:34: sessions.think_time is out of range: -3s, want from 0 to 31622400 seconds"},
		{ok + "sessions: {turns: 2, timestamps: some}", `d.yaml:3:34: sessions.timestamps is not one of first, all: "some"`},
		{ok + "sessions: {turns: 2, max_isl: 9}", "d.yaml:3:31: sessions.max_isl is 9, but a first prompt can have 10 tokens"},
		// clients
		{"clients: 3", "d.yaml:1:10: clients is not a list of 1 to 1000 clients"},
		{ok + "clients: [{}, {}]", "d.yaml:3:11: a client needs a share or its own rate"},
		{ok + "clients: [{share: 0.7}, {share: 0.7}]", "d.yaml:3:10: the shares of clients add up to 1.4, want 1"},
		{ok + "clients: [{share: 0.5}]", "d.yaml:3:10: the shares of clients add up to 0.5, want 1"},
		{ok + "clients: [{name: a, share: 0.5}, {name: a, share: 0.5}]", `d.yaml:3:41: two clients have the name "a"`},
		{ok + "clients: [{name: 'a b'}]", `d.yaml:3:18: name must be 1 to 40 letters, digits or _.-: "a b"`},
		{ok + "clients: [{share: 1, rate: 3}]", "d.yaml:3:28: clients.share and clients.rate are both set"},
		{ok + "clients: [{share: 1, arrival: constant}]", "a client with a share uses the top-level arrival and cannot have its own"},
		{ok + "rate: 3\nclients: [{rate: 3}]", "d.yaml:3:7: this rate is unused: every client has its own arrivals"},
		{ok + "clients: [{seed: 3}]", `d.yaml:3:12: "clients.seed" is not a known key`},
	} {
		d, err := Parse([]byte(tc.text), testOptions)
		if err == nil {
			t.Errorf("accepted as %+v; want error %q:\n%s", d, tc.want, tc.text)
		} else if !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error is\n%v\nwant in it\n%s\nfor\n%s", err, tc.want, tc.text)
		}
	}
}

func TestSettings(t *testing.T) {
	flag := func(key, value string) Setting { return Setting{Key: key, Value: value, From: "--" + key} }
	d := parse(t, "", flag("isl", "3000"), flag("osl", "150"))
	if d.requests != DefaultRequests || d.blockSize != 512 {
		t.Errorf("lengths alone draw %d requests in blocks of %d", d.requests, d.blockSize)
	}
	rows := draw(t, "isl: 10\nosl: 5\nsessions: {turns: 2}\narrival: poisson\n",
		flag("isl", "20"), flag("sessions.turns", "1"), flag("num_requests", "3"), flag("arrival.process", "constant"), flag("rate", "4"))
	for i, r := range rows {
		if r.InputLength != 20 || r.OutputLength != 5 || r.SessionID != "" || r.Timestamp.Value != float64(i)*250 || len(rows) != 3 {
			t.Errorf("row %d is %+v", i, r)
		}
	}
	if rows := draw(t, "osl: file:numbers.txt\n", flag("isl", "file:flag.txt")); rows[0].InputLength != 9 {
		t.Errorf("a file in a setting: ISL is %d, want 9", rows[0].InputLength)
	}
	for text, tc := range map[string]struct {
		set  Setting
		want string
	}{
		"":                             {flag("isl", "many"), "--isl: isl is neither a number nor a distribution"},
		"isl: 1\nshared: [{count: 1}]": {flag("shared.count", "3"), "--shared.count: shared is a list at d.yaml:2:9: its keys cannot be set"},
		"osl: 1\nclients: [{isl: 3}]":  {flag("isl", "3"), "--isl: isl is also set by the client at d.yaml:2:17; a setting must apply to all clients"},
	} {
		o := testOptions
		o.Settings = []Setting{tc.set}
		if _, err := Parse([]byte(text), o); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s\nerror is %v, want %s", text, err, tc.want)
		}
	}
}

func TestFilesNeedAnOpener(t *testing.T) {
	_, err := Parse([]byte("isl: file:x.txt\nosl: 1"), Options{})
	if want := `spec:1:6: isl names a file, but files are not available: "x.txt"`; err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	_, err = Parse([]byte("isl: file:x.txt\nosl: 1"), testOptions)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cause is lost: %v", err)
	}
}

// TestSampleSpecs checks what the specs in traces/ draw.
func TestSampleSpecs(t *testing.T) {
	type like struct {
		requests                     int
		isl, islOff, osl, oslOff     float64 // mean and how far off it may be
		hit, hitOff, repeated, offBy float64 // share of blocks seen before; turns a session
	}
	fixed := func(isl, osl float64) like { return like{1000, isl, 0, osl, 0, 0, 0, 0, 0} }
	want := map[string]like{
		"fixed-3000-150":  fixed(3000, 150),
		"fixed-1000-1000": fixed(1000, 1000),
		"fixed-500-1000":  fixed(500, 1000),
		"fixed-2500-100":  fixed(2500, 100),
		"fixed-512-512":   fixed(512, 512),
		"fixed-2000-2000": fixed(2000, 2000),
		"fixed-2000-100":  {1000, 2000, 0, 100, 0, 0.98, 0, 0, 0},
		"conversation":    {153, 11_479, 5, 175.8, 1, 0.763, 0.001, 0, 0},
		"chat":            {4952, 2165, 5, 248, 1, 0.688, 0.001, 4, 0.2},
		"agent":           {3000, 23124, 5, 288.6, 1, 0.943, 0.001, 0, 0},
		"long-document":   {1000, 23167, 5, 350, 1, 0.822, 0.001, 2.62, 0.01},
		"shared-prefix":   {2000, 3978, 1, 193, 1, 0.788, 0.001, 0, 0},
	}
	page := strings.ReplaceAll(reference(t), ",", "")
	for _, name := range traces.Specs() {
		t.Run(name, func(t *testing.T) {
			w, known := want[name]
			if !known {
				t.Fatal("add it to this test")
			}
			text, _ := traces.Spec(name)
			rows := draw(t, string(text))
			var isl, osl, seen, blocks, last float64
			ids, turns := map[uint64]bool{}, map[string]int{}
			for _, r := range rows {
				isl, osl = isl+float64(r.InputLength), osl+float64(r.OutputLength)
				turns[r.SessionID]++
				for _, id := range r.HashIDs {
					if blocks++; ids[id] {
						seen++
					}
					ids[id] = true
				}
				if r.Timestamp.Set && r.Timestamp.Value < last {
					t.Fatalf("arrival %v comes after %v", r.Timestamp.Value, last)
				}
				last = max(last, r.Timestamp.Value)
			}
			n := float64(len(rows))
			near := func(what string, got, want, off float64) {
				if got < want-off || got > want+off {
					t.Errorf("%s is %v, want %v", what, got, want)
				}
			}
			near("requests", n, float64(w.requests), 0)
			near("mean ISL", isl/n, w.isl, w.islOff)
			near("mean OSL", osl/n, w.osl, w.oslOff)
			near("block hit rate", seen/blocks, w.hit, w.hitOff)
			if row := fmt.Sprintf("\n| `%s` | %.0f | %.0f | %.0f | %.1f %% |", name, n, isl/n, osl/n, 100*seen/blocks); w.hit > 0 && !strings.Contains(page, row) {
				t.Errorf("no row %s in the page", row)
			}
			if w.repeated > 0 {
				near("turns a session", n/float64(len(turns)), w.repeated, w.offBy)
			}
		})
	}
	if len(want) != len(traces.Specs()) {
		t.Errorf("specs are %v", traces.Specs())
	}
	if _, ok := traces.Spec("../chat"); ok || !slices.IsSorted(traces.Specs()) {
		t.Error("names can be paths, or are out of order")
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range traces.Specs() {
		text, _ := traces.Spec(name)
		f.Add(text)
	}
	f.Add([]byte("isl: {law: mixture, of: [{share: 1, law: file, path: numbers.txt}]}\nosl: 1\nrate: {phases: [{for: 1, at: 1}], repeat: true}"))
	f.Add([]byte("lengths: small.jsonl\narrival: {file: small.jsonl}\nclients: [{share: 1}, {rate: 2, arrival: {cv: 2, bursts: {on: 1, off: 2}}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse(text, testOptions)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x00") {
				t.Fatalf("error is not one line: %q", err)
			}
			return
		}
		// Whatever is taken can be drawn: a few rows, in bounds, in order.
		last, tokens := 0.0, 0
		for r, err := range trace.Take(d.Requests(), 20) {
			if err != nil {
				return
			}
			if want := (r.InputLength + d.blockSize - 1) / d.blockSize; len(r.HashIDs) != want || r.InputLength < 1 || r.OutputLength < 1 || r.InputLength > trace.MaxLength {
				t.Fatalf("%d ids for %d tokens in blocks of %d", len(r.HashIDs), r.InputLength, d.blockSize)
			}
			if r.Timestamp.Set && r.Timestamp.Value < last {
				t.Fatal("out of order")
			}
			last = max(last, r.Timestamp.Value)
			if tokens += len(r.HashIDs); tokens > 1<<20 {
				return
			}
		}
		_ = fmt.Sprint(d.BlockSize())
	})
}

// The key law was renamed to distribution; old specs stay readable.
func TestLawIsDistribution(t *testing.T) {
	text := "isl: {distribution: normal, mean: 900, std: 9}\nosl: {distribution: mixture, of: [{share: 1, distribution: fixed, value: 3}]}"
	if want, got := draw(t, text), draw(t, strings.ReplaceAll(text, "distribution:", "law:")); lines(got) != lines(want) {
		t.Errorf("got\n%s\nwant\n%s", lines(got), lines(want))
	}
}
