package spec

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"moontide/trace"
	"moontide/traces"
)

var testOptions = Options{Name: "d.yaml"}

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
		{"isl: [1", "d.yaml:1:6: sequence end token"},
		{"isl: 1\nisl: 2", `d.yaml:2:1: mapping key "isl" already defined`},
		{"- 1", "d.yaml:1:1: the spec is a list, want a mapping"},
		{ok + "---\nisl: 3", "d.yaml: more than one document"},
		{"isl: &a 3\nosl: *a", "d.yaml:1:6: anchors, aliases and tags"},
		{"1: 3", "d.yaml:1:1: a key is not plain text"},
		{strings.Repeat("[", 100), "d.yaml: more than 32 nested lists or mappings"},
		{strings.Repeat("- ", 100), "d.yaml: more than 32 nested lists or mappings"},
		{strings.Repeat("#\n", 40_000), "d.yaml: longer than 64 KiB"},
		// keys and values
		{"", "d.yaml: isl is missing"},
		{"isl: 10", "d.yaml:1:1: osl is missing"},
		{ok + "rat: 3", `d.yaml:3:1: "rat" is not a known key: want one of num_requests, duration`},
		{ok + "rate:", "d.yaml:3:7: rate has no value"},
		{ok + "rate: 0", "d.yaml:3:7: rate is out of range: 0, want from 0.000001 to 1000000"},
		{ok + "duration: soon", `d.yaml:3:11: duration is not a time (90s, 10m, or seconds): "soon"`},
		// laws
		{"isl: 0\nosl: 5", "d.yaml:1:6: isl is out of range: 0, want from 1 to 100000000"},
		{"isl: {distribution: fixed, value: 2.5}\nosl: 5", "isl.value is not a whole number: 2.5"},
		{ok + "sessions: {turns: 2, think_time: {distribution: uniform, min: 9s, max: 3s}}", "sessions.think_time has min 9 above max 3 seconds"},
		{ok + "sessions: {turns: 2, think_time: 'normal:1s:1ms:min=9s'}", "for values from 9 to 31622400 seconds: want bounds"},
		{"isl: pareto:3\nosl: 5", `isl is neither a number nor a distribution: "pareto:3", want one of fixed, uniform`},
		{"isl: uniform:100\nosl: 5", "d.yaml:1:6: isl is uniform and needs min and max"},
		{"isl: uniform:1:2:3\nosl: 5", `d.yaml:1:6: isl has too many parameters: "uniform:1:2:3", want uniform:min:max`},
		{"isl: uniform:1:2:min=3\nosl: 5", "d.yaml:1:6: min of isl is set twice"},
		{"isl: normal:100\nosl: 5", "d.yaml:1:6: isl needs std; the short form is normal:mean:std"},
		{"isl: lognormal:-5:1\nosl: 5", "d.yaml:1:6: isl.mean is out of range: -5"},
		{"isl: normal:1000:10:max=500\nosl: 5", "d.yaml:1:6: isl has a probability of 0 for values from 1 to 500: want bounds that the distribution reaches"},
		{"isl: {distribution: normal, mean: 9, std: 1, shape: 3}\nosl: 5", `"isl.shape" is not a known key: want one of distribution, min, max, mean, std`},
		{"isl: {distribution: mixture}\nosl: 5", "isl needs of: a list of 1 to 100 distributions"},
		{"isl: {distribution: mixture, of: [3]}\nosl: 5", "a part of isl is a single value, want a distribution with its share"},
		{"isl: {distribution: mixture, of: [{distribution: fixed, value: 3}]}\nosl: 5", "isl needs share"},
		{"isl: {distribution: mixture, of: [{share: 0.3, distribution: fixed, value: 3}, {share: 0.6, distribution: fixed, value: 4}]}\nosl: 5", "the shares of isl add up to 0.9, want 1"},
		{"isl: {distribution: mixture, of: [{share: 1, distribution: mixture, of: []}]}\nosl: 5", "isl has a nested mixture"},
		{ok + "correlation: 0.5", "d.yaml:3:14: correlation needs an isl and an osl that vary"},
		{"isl: 3\nunique_isl: 3\nosl: 1", "d.yaml:2:13: isl and unique_isl are both set"},
		// arrivals
		{ok + "arrival: gamma", "d.yaml:3:10: arrival is gamma and needs cv"},
		{ok + "rate: [{for: 1, at: 1}]\narrival: {cycle: {}}", "d.yaml:4:18: arrival.cycle needs a constant rate (its mean)"},
		{ok + "arrival: {bursts: {on: 1}}", "d.yaml:3:19: arrival.bursts needs on and off"},
		{ok + "rate: 0.001\narrival: {bursts: {on: 0.01, off: 0.01}}", "d.yaml:4:19: arrival.bursts switch 5e+04 times per request"},
		{ok + "rate: []", "d.yaml:3:7: rate has 0 phases, want 1 to 1000"},
		{ok + "rate: [{at: 1}]", "d.yaml:3:8: a phase needs for and at, or for and to"},
		{ok + "rate: [{for: 1, to: 1}]", "d.yaml:3:8: the first phase has no previous rate"},
		{ok + "rate: [{for: 1, at: 1, to: 2}]", "rate.at and rate.to are both set"},
		{ok + "rate: [{for: 1, at: 0}]", "d.yaml:3:7: the rate is 0 in every phase"},
		{ok + "rate: [{for: 1, from: 5, to: 0}]\nnum_requests: 100", "d.yaml:4:15: num_requests may never be reached because the rate ends at 0"},
		// sharing
		{ok + "shared: {count: 2}", "d.yaml:3:9: shared.tokens is missing"},
		{ok + "shared: {tokens: 11}", "d.yaml:1:6: isl includes the shared prefix but can be as short as 10 tokens, less than the prefix's 11: raise min"},
		{"unique_isl: 60000000\nosl: 1\nshared: {tokens: 60000000}", "d.yaml:1:13: a prompt can have 120000000 tokens (60000000 of them shared), more than 100000000"},
		{ok + "shared: [{count: 1000, tokens: 1}, {count: 1000, tokens: 1}]", "d.yaml:3:44: more than 1000000 shared prefixes (1000000 at this level)"},
		// sessions
		{ok + "sessions: {turns: 2, think_time: -3s}", "d.yaml:3:34: sessions.think_time is out of range: -3s, want from 0 to 31622400 seconds"},
		{ok + "sessions: {turns: 2, timestamps: some}", `d.yaml:3:34: sessions.timestamps is not one of first, all: "some"`},
		{ok + "sessions: {turns: 2, max_isl: 9}", "d.yaml:3:31: sessions.max_isl is 9, but a first prompt can have 10 tokens"},
		// clients
		{"clients: 3", "d.yaml:1:10: clients is not a list of 1 to 1000 clients"},
		{ok + "clients: [{}, {}]", "d.yaml:3:11: a client needs a share or its own rate"},
		{ok + "clients: [{share: 0.7}, {share: 0.7}]", "d.yaml:3:10: the shares of clients add up to 1.4, want 1"},
		{ok + "clients: [{name: a, share: 0.5}, {name: a, share: 0.5}]", `d.yaml:3:41: two clients have the name "a"`},
		{ok + "clients: [{name: 'a b'}]", `d.yaml:3:18: name must be 1 to 40 letters, digits or _.-: "a b"`},
		{ok + "clients: [{share: 1, rate: 3}]", "d.yaml:3:28: clients.share and clients.rate are both set"},
		{ok + "clients: [{share: 1, arrival: constant}]", "a client with a share uses the top-level arrival and cannot have its own"},
		{ok + "rate: 3\nclients: [{rate: 3}]", "d.yaml:3:7: this rate is unused: every client has its own arrivals"},
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

// TestSampleSpecs draws the specs in traces/: those of fixed lengths have the lengths of
// their names, and the page says what the others have.
func TestSampleSpecs(t *testing.T) {
	page := strings.ReplaceAll(reference(t), ",", "")
	for _, name := range traces.Specs() {
		text, _ := traces.Spec(name)
		rows := draw(t, string(text))
		var isl, osl, seen, blocks, last float64
		ids := map[uint64]bool{}
		for _, r := range rows {
			isl, osl = isl+float64(r.InputLength), osl+float64(r.OutputLength)
			for _, id := range r.HashIDs {
				if blocks++; ids[id] {
					seen++
				}
				ids[id] = true
			}
			if r.Timestamp.Set && r.Timestamp.Value < last {
				t.Fatalf("%s: arrival %v comes after %v", name, r.Timestamp.Value, last)
			}
			last = max(last, r.Timestamp.Value)
		}
		n := float64(len(rows))
		if lengths, fixed := strings.CutPrefix(name, "fixed-"); fixed && (lengths != fmt.Sprintf("%v-%v", isl/n, osl/n) || n != 1000) {
			t.Errorf("%s: %v requests of %v and %v tokens", name, n, isl/n, osl/n)
		}
		if row := fmt.Sprintf("\n| `%s` | %.0f | %.0f | %.0f | %.1f %% |", name, n, isl/n, osl/n, 100*seen/blocks); seen > 0 && !strings.Contains(page, row) {
			t.Errorf("no row %s in the page", row)
		}
	}
	if _, ok := traces.Spec("../chat"); ok || !slices.IsSorted(traces.Specs()) || len(traces.Specs()) < 12 {
		t.Errorf("names can be paths, are out of order, or are missing: %v", traces.Specs())
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range traces.Specs() {
		text, _ := traces.Spec(name)
		f.Add(text)
	}
	f.Add([]byte("isl: {distribution: mixture, of: [{share: 1, distribution: normal, mean: 9, std: 2}]}\nosl: 1\nrate: [{for: 1, at: 1}]"))
	f.Add([]byte("isl: 3\nosl: 1\nclients: [{share: 1}, {rate: 2, arrival: {cv: 2, bursts: {on: 1, off: 2}}}]"))
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
	})
}

// reference is the page that documents the keys of a spec.
func reference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// firstCells returns the names in the first cells of the table rows below a
// heading, up to the next heading.
func firstCells(t *testing.T, page, heading string) (names []string) {
	t.Helper()
	_, section, found := strings.Cut(page, "\n"+heading+"\n")
	if !found {
		t.Fatalf("no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			names = append(names, name[1])
		}
	}
	return names
}

// The reference has a row for each key that Parse knows, and for no other.
func TestReferenceHasAllKeys(t *testing.T) {
	documented := firstCells(t, reference(t), "## Description reference")
	var known []string
	for mapping, keys := range keysOf {
		for _, key := range keys {
			switch name := strings.TrimPrefix(mapping+"."+key, "."); {
			case mapping == "clients" && slices.Contains(clientKeys, key): // as at the top level
			case keysOf[name] != nil && !slices.Contains(documented, name): // its keys are
			default:
				known = append(known, name)
			}
		}
	}
	same(t, known, documented)
}

// The reference has a row for each distribution, with its keys.
func TestReferenceHasAllDistributions(t *testing.T) {
	page := reference(t)
	same(t, slices.Collect(maps.Keys(families)), firstCells(t, page, "### Distributions"))
	for name, of := range families {
		cell := regexp.MustCompile("(?m)^\\|[^|]*`" + name + "`[^|]*\\|([^|]*)\\|").FindStringSubmatch(page)
		for _, key := range of.keys() {
			if bound := key == "min" || key == "max"; cell == nil || key != "distribution" && (!bound || name == "uniform") && !strings.Contains(cell[1], "`"+key+"`") {
				t.Errorf("%s: no key %s in %q", name, key, cell)
			}
		}
	}
}

func same(t *testing.T, known, documented []string) {
	t.Helper()
	slices.Sort(known)
	slices.Sort(documented)
	for _, name := range known {
		if !slices.Contains(documented, name) {
			t.Errorf("%s is not documented", name)
		}
	}
	for i, name := range documented {
		if !slices.Contains(known, name) {
			t.Errorf("%s is documented and unknown", name)
		}
		if i > 0 && name == documented[i-1] {
			t.Errorf("%s is documented twice", name)
		}
	}
}
