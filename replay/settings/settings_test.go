package settings

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"moontide/replay/openai"
	"moontide/replay/sim/engine"
	"moontide/trace"
)

// set returns settings from texts such as "rate=4".
func set(t testing.TB, texts ...string) (s Settings) {
	t.Helper()
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		if err := s.Set(name, value, "a test"); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return s
}

// all returns the texts of the settings that were set.
func (s *Settings) all() map[string]string {
	texts := map[string]string{}
	for _, row := range s.given() {
		texts[row.Name] = row.Text(s)
	}
	return texts
}

// example returns a value of a setting other than its default, as its text is written.
func example(row *Setting) string {
	texts := map[string]string{
		"model": "a=0.7,b=0.3", "header": "X-Team: a", "tls": "ca=ca.pem", "token-range": "5:9", "timeout": "1h,,2m", "verdict": "lag=5ms,failed=0.1",
		"block-ids": "unique", "url": "http://h:1", "decode-table": "1:0s,8:2ms", "extra-body": `{"a": 1}`,
	}
	if len(row.Choices) > 1 {
		return row.Choices[1].Name
	}
	var s Settings
	switch field := row.Field(&s).(type) {
	case *bool:
		return "true"
	case *int, *uint64:
		return "7"
	case *float64, *trace.Opt[float64]:
		return "0.5"
	case *time.Duration, *seconds:
		return "1m30s"
	case parameter:
		if field.d.Engine.Costs.Decode == nil && row.Name != "decode-table" {
			return "2.5ms"
		}
	}
	if text := texts[row.Name]; text != "" {
		return text
	}
	return "words"
}

// Every setting has a text that sets it and nothing else, in flags, in JSON and in files, and
// can be unset again.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for i := range Table {
		row := &Table[i]
		for _, name := range append([]string{row.Name}, row.Others...) {
			if names[name] || !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(name) {
				t.Errorf("%s: the name %s is another setting's, or has no form of names", row.Name, name)
			}
			names[name] = true
		}
		if usage := row.Usage(); usage == "" || strings.ContainsAny(usage, "%\n") && !strings.Contains(usage, "5%") && !strings.Contains(usage, "1%") || row.Group == "" {
			t.Errorf("%s: group %q, help %q", row.Name, row.Group, usage)
		}
		var none Settings
		if _, isSet := none.From(row.Name); isSet {
			t.Errorf("%s is set from the start", row.Name)
		}
		text := example(row)
		s := set(t, row.Name+"="+text)
		want := map[string]string{row.Name: text}
		if diff := cmp.Diff(want, s.all()); diff != "" {
			t.Errorf("%s, -want +got:\n%s", row.Name, diff)
			continue
		}
		if from, isSet := s.From(row.Name); from != "a test" || !isSet {
			t.Errorf("%s is set: %v, from %q", row.Name, isSet, from)
		}
		if again := set(t, row.Name+"="+row.Text(&s)); row.Text(&again) != text {
			t.Errorf("%s: %q is read as %q", row.Name, text, row.Text(&again))
		}
		later := s
		if err := later.Set(strings.ReplaceAll(row.Name, "-", "_"), text, ""); err != nil || row.Text(&s) != text {
			t.Errorf("%s: a change of a copy changes the original, or %v", row.Name, err)
		}
		if later.Unset(row.Name); len(later.all()) != 0 || row.Text(&s) != text {
			t.Errorf("%s: unset it is %v, and the original is %q", row.Name, later.all(), row.Text(&s))
		}
		if row.Axis {
			if values, err := row.Values(text); err != nil || !slices.Equal(values, []string{text}) {
				t.Errorf("the axis %s has the values %q, %v", row.Name, values, err)
			}
		}
		if row.Here || row.Masked(&s) != text {
			continue
		}
		written, err := json.Marshal(s)
		var read Settings
		if err := errors.Join(err, json.Unmarshal(written, &read)); err != nil || read.all()[row.Name] != text {
			t.Errorf("%s: %s is read as %v, %v", row.Name, written, read.all(), err)
		}
		entries, err := parse(written, "run.json")
		if err != nil || len(entries) != 1 || entries[0].Name != row.Name || entries[0].Place != "run.json:1" {
			t.Errorf("%s: the file %s has %+v, %v", row.Name, written, entries, err)
			continue
		}
		var fromFile Settings
		for _, text := range entries[0].Texts {
			if err := fromFile.Set(row.Name, text, ""); err != nil {
				t.Error(err)
			}
		}
		if diff := cmp.Diff(want, fromFile.all()); diff != "" {
			t.Errorf("%s from a file, -want +got:\n%s", row.Name, diff)
		}
	}
}

// Texts are normalized, or refused with the reason.
func TestTexts(t *testing.T) {
	for _, test := range []struct{ name, text, want, fail string }{
		{"rate", "1e3", "1000", ""}, {"rate", "+Inf", "inf", ""}, {"rate", "0", "", "must be positive: 0"}, {"rate", "NaN", "", `"NaN" is not a number`}, {"rate", "four", "", "not a number"},
		{"session-rate", "-1", "", "must be positive"}, {"speedup", "inf", "", "must be positive"}, {"top-p", "1.1", "", "above 0 and at most 1"}, {"temperature", "2.5", "", "from 0 to 2"},
		{"max-concurrency", "1e3", "1000", ""}, {"max-concurrency", "0x10", "16", ""}, {"max-concurrency", "2.5", "", "not a whole number"}, {"max-concurrency", "1000001", "", "from 1 to 1000000"},
		{"max-concurrency", "1e300", "", "not a whole number"}, {"seed", "-1", "", "from 0 to 18446744073709551615"}, {"retry", "101", "", "from 0 to 100"},
		{"duration", "90", "1m30s", ""}, {"duration", "1h0m0s", "1h", ""}, {"duration", "0", "", "must be positive"}, {"duration", "-1s", "", "is negative"}, {"duration", "9e99", "", "out of range"}, {"duration", "9000h", "", "out of range"},
		{"duration", "soon", "", "not a duration"}, {"warmup-time", "1.5", "1.5s", ""}, {"closed", "maybe", "", "neither true nor false"},
		{"endpoint", " CHAT ", "chat", ""}, {"answers", "dead", "", `"dead" is unknown: use `}, {"routing", "round_robin", "round-robin", ""}, {"format", "", "", "is empty"}, {"server-metrics", " ", "", "is empty"},
		{"timeout", "5m", "5m", ""}, {"timeout", ",,1s", ",,1s", ""}, {"timeout", "1,2,3,4", "", "more than three times"}, {"timeout", "0", "", "must be positive"}, {"timeout", "1,", "", "not a duration"},
		{"verdict", "lag_share=5%", "lag-share=0.05", ""}, {"verdict", "failed=0", "", "above 0 and at most 1"}, {"verdict", "lag=0", "", "must be positive"}, {"verdict", "late=1", "", "no limit of the verdict: use lag, "}, {"verdict", "5%", "", "not NAME=LIMIT"},
		{"tls", "insecure", "insecure", ""}, {"tls", "ca=", "", "neither insecure nor ca=FILE"}, {"token-range", "0:5", "", "not LO:HI"}, {"token-range", "1:4294967296", "", "not LO:HI"},
		{"header", "secret", "", "number 1 is not 'Name: value'"}, {"step-base", "1", "1s", ""}, {"step-base", "-1s", "", "not from 0"}, {"engines", "0", "", "from 1 to 1024"},
	} {
		var s Settings
		err := s.Set(test.name, test.text, "")
		switch failed := test.want == ""; {
		case failed && (err == nil || !strings.Contains(err.Error(), test.fail) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s=%s: %v, want the error %q", test.name, test.text, err, test.fail)
		case !failed && (err != nil || Find(test.name).Text(&s) != test.want):
			t.Errorf("%s=%s is %q, %v", test.name, test.text, Find(test.name).Text(&s), err)
		}
	}
	var s Settings
	for name, want := range map[string]string{"concurency": `there is no setting "concurency"`, "max-concurency": "did you mean max-concurrency?", "max_concurency": "did you mean max-concurrency?", "x": `"x"`} {
		if err := s.Set(name, "1", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValues(t *testing.T) {
	for _, test := range []struct{ name, text, want, fail string }{
		{"max-concurrency", "1,2,4", "1 2 4", ""}, {"max-concurrency", " 8 ", "8", ""}, {"max-concurrency", "2..4,8", "2 3 4 8", ""}, {"max-concurrency", "1 .. 8 .. 3", "1 4 7", ""}, {"max-concurrency", "1e3", "1000", ""},
		{"rate", "0.5,10,inf", "0.5 10 inf", ""}, {"engines", "1..3", "1 2 3", ""}, {"routing", "prefix,round_robin", "prefix round-robin", ""},
		{"max-concurrency", "", "", "not a whole number"}, {"max-concurrency", "0", "", "from 1 to 1000000"}, {"max-concurrency", "2,1,2.0", "", "2 twice"}, {"max-concurrency", "1..3,2", "", "2 twice"}, {"max-concurrency", "4..2", "", "the range 4..2 is empty"},
		{"max-concurrency", "1..4..2..1", "", "not a range"}, {"max-concurrency", "1..9999999", "", "more than 1000 values"}, {"max-concurrency", "inf", "", "not a whole number"},
		{"rate", "1..3", "", "not a number"}, {"rate", "inf,+Inf", "", "inf twice"}, {"rate", "2,-1", "", "must be positive: -1"}, {"seed", "1,2", "", "takes one value, not the list"},
	} {
		values, err := Find(test.name).Values(test.text)
		if got := strings.Join(values, " "); err == nil && got != test.want || (err == nil) != (test.fail == "") || err != nil && !strings.Contains(err.Error(), test.fail) {
			t.Errorf("%s=%s: %q, %v", test.name, test.text, got, err)
		}
	}
}

// Settings that exclude or need each other are named.
func TestRules(t *testing.T) {
	for texts, want := range map[string]string{
		"":                                     "",
		"closed=true":                          "{closed} needs {max-concurrency} or {max-sessions}",
		"closed=true max-sessions=2":           "",
		"rate=1 session-rate=1":                "{rate} and {session-rate} exclude each other",
		"arrival=gamma":                        "{arrival} needs {rate}",
		"closed=true max-concurrency=1 rate=2": "{closed} ignores arrivals, and {rate} sets them",
		"closed=true max-concurrency=1 ramp=2": "omit {ramp}",
		"spread-grid=true rate=1":              "{spread-grid} and {rate}",
		"rate=inf ramp=1":                      "{ramp} cannot ramp an infinite rate, see {rate}",
		"start=5 end=5":                        "from {start} 5s to {end} 5s is empty",
		"no-chunk-times=true warmup-time=1":    "{no-chunk-times} discards what {warmup-time}",
		"trace=t isl=1":                        "{isl} describes requests",
		"isl=1":                                "{osl} is missing",
		"osl=1":                                "{isl} is missing",
		"isl=1 osl=1 speedup=2":                "{speedup} needs a trace",
		"isl=1 osl=1 cv=2 burstiness=2 rate=1": "{cv} and {burstiness}",
		"spec=-":                               "{spec} must be a file",
		"virtual=true url=http://h":            "{url} is for requests over HTTP",
		"model=a=1,b=1":                        "{model} names several models, which needs {url}",
		"proxy=none":                           "{proxy} needs {url}",
		"url=http://h tls=insecure":            "{tls} is for https",
		"url=HTTPS://h tls=insecure":           "",
		"dataset=d":                            "{dataset} needs the model's own {tokenizer}",
		"tokenizer=t":                          "{tokenizer} applies to text prompts",
		"token-range=1:9 prompt=words":         "{token-range} applies to token-id prompts",
		"url=http://h engines=2":               "{engines} is for simulated engines, which {url} replaces",
		"engines=2 prefill-engines=1 decode-engines=1": "{engines} and {prefill-engines}",
		"prefill-engines=1":                            "{prefill-engines} and {decode-engines} go together",
		"rendezvous=:1":                                "{rendezvous} needs {part}",
		"part=1/2":                                     "{part} needs {url}",
		"part=1/2 url=http://h max-sessions=3 part-by=request": "{part-by} must be session or prefix",
	} {
		s := set(t, strings.Fields(texts)...)
		err := s.Check()
		var wrong *Error
		if got := errors.As(err, &wrong); got != (want != "") || got && !strings.Contains(wrong.Text, want) {
			t.Errorf("%s: %v, want %q", texts, err, want)
		}
		if wrong != nil && !strings.Contains(wrong.Named(func(name string) string { return "--" + name }), strings.NewReplacer("{", "--", "}", "").Replace(want)) {
			t.Errorf("%s: as flags: %s", texts, wrong.Named(func(name string) string { return "--" + name }))
		}
	}
	own := Settings{Client: openai.Config{Endpoint: "nowhere"}} // set by a program
	if err := own.Check(); err == nil || !strings.Contains(err.Error(), `endpoint "nowhere" is unknown`) {
		t.Errorf("of a program: %v", err)
	}
}

// What may be secret is neither in JSON nor in texts for people.
func TestSecrets(t *testing.T) {
	const secret = "sk-abcdefgh12345678ijklm"
	for name, text := range map[string]string{
		"url": "http://user:" + secret + "@h/v1?key=" + secret, "header": "Authorization: Bearer " + secret, "proxy": "http://u:" + secret + "@p", "extra-body": `{"key": "` + secret + `"}`,
		"salt": secret, "server-metrics": "http://u:" + secret + "@h/metrics", "model": secret, "tokenizer": "/home/" + secret + "/tokenizer.json", "spec": secret,
	} {
		s := set(t, name+"="+text)
		written, err := json.Marshal(s)
		shown := Find(name).Masked(&s)
		for _, given := range s.Given() {
			shown += given
		}
		if err != nil || strings.Contains(string(written)+shown, "abcdefgh") || strings.Contains(Differences(&s, &Settings{})[0].String(), "abcdefgh") {
			t.Errorf("%s: %s, %s, %v", name, written, shown, err)
		}
		var read Settings
		if err := json.Unmarshal(written, &read); err != nil {
			t.Errorf("%s: a mask is not read: %v", name, err)
		}
		if entries, err := parse(written, "run.json"); err != nil || !entries[0].Masked {
			t.Errorf("%s: a mask is a value: %v, %v", name, entries, err)
		}
	}
}

// A run with a long body is repeated, too.
func TestLargeRun(t *testing.T) {
	t.Chdir(t.TempDir())
	body := `{"stop_token_ids":[1` + strings.Repeat(",2", 1<<16) + `]}`
	var s Settings
	if err := s.Set("extra-body", body, ""); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"settings": s, "outcome": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("run.json", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if entries, err := Read("run.json"); err != nil || len(entries) != 1 || entries[0].Texts[0] != body {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

func TestFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	path := "s.yaml"
	for text, want := range map[string]string{
		"rate: 4 # a comment\nmax_concurrency: '8'\n":                "rate=4@1 max-concurrency=8@2",
		"url:\n  - http://a\n  - http://b\nclosed: true\nrate: .inf": "url=http://a|http://b@1 closed=true@4 rate=inf@5",
		`{"version": 1, "rate": 2.50, "isl": "normal:3:1"}`:          "rate=2.50@1 isl=normal:3:1@1",
		`{"settings": {"version": 1, "rate": 4}, "outcome": {}}`:     "rate=4@1",
		"rate: .5":                                  "rate=.5@1",
		"extra-body: |\n  {\"a\": 1}\n":             "extra-body={\"a\": 1}\n@1",
		`{"version": "v1", "schedule_sha256": "x"}`: "! s.yaml: is the run.json of an older version",
		"version: 2\nrate: 1":                       "! s.yaml:1: has settings of version 2",
		"\nmax-concurency: 8":                       `! s.yaml:2: there is no setting "max-concurency"; did you mean max-concurrency?`,
		"rate: 1\nsession_rate:\n":                  "! s.yaml:2: session_rate has no value",
		"rate: {a: 1}":                              "! s.yaml:1: rate is neither a single value nor a list",
		"url: [[a]]":                                "! s.yaml:1: url has a list in a list",
		"max-turns: 1\nmax_turns: 2":                "! s.yaml:2: max_turns is set twice",
		"rate: &a 1\nspeedup: *a":                   "! s.yaml:1: rate is neither",
		"<<: {rate: 1}":                             "! s.yaml:1: << is neither",
		"- rate: 1":                                 "! s.yaml:1: want a mapping of settings",
		"rate":                                      "! s.yaml:1: want a mapping of settings",
		"":                                          "! s.yaml: has no settings",
		"rate: 1\n---\nrate: 2":                     "! s.yaml: has no settings",
		"rate: [1":                                  "! s.yaml:1",
		"rate: 1\n\tspeedup: 2":                     "! s.yaml:",
		strings.Repeat("[", 40):                     "! s.yaml: more than 32 nested",
		strings.Repeat("- ", 20_000):                "! s.yaml: more than 32 nested",
		"a: 1\n" + strings.Repeat("? ", 99):         "! s.yaml: more than 32 nested",
		strings.Repeat("# a\n", 20_000):             "! s.yaml: longer than 64 KiB",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		entries, err := Read(path)
		var got []string
		for _, e := range entries {
			got = append(got, e.Name+"="+strings.Join(e.Texts, "|")+"@"+strings.TrimPrefix(e.Place, "s.yaml:"))
		}
		if err != nil {
			got = []string{"! " + strings.TrimPrefix(err.Error(), "reading settings: ")}
		}
		if joined := strings.Join(got, " "); joined != want && !(err != nil && strings.HasPrefix(want, "! ") && strings.HasPrefix(joined, want)) {
			t.Errorf("%.80q: %s, want %s", text, joined, want)
		}
	}
	for _, other := range []string{path + "-none", filepath.Dir(path)} {
		if _, err := Read(other); err == nil || !strings.HasPrefix(err.Error(), "reading settings: ") {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// A later run has what was set in an earlier one, unless it sets that itself.
func TestAdopt(t *testing.T) {
	earlier, s := set(t, "rate=4", "header=A: b", "header=C: d", "seed=1", "out=x", "step-base=1s"), set(t, "seed=2")
	if diff := cmp.Diff([]Difference{{"header", "A: ***, C: ***", ""}, {"seed", "1", "2"}, {"rate", "4", ""}, {"step-base", "1s", ""}}, Differences(&earlier, &s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	s.Adopt(&earlier, "run-1")
	want := map[string]string{"rate": "4", "header": "A: b, C: d", "seed": "2", "step-base": "1s"}
	if diff := cmp.Diff(want, s.all()); diff != "" || s.Sources()["rate"] != "run-1" || s.Sources()["seed"] != "a test" {
		t.Errorf("%v, -want +got:\n%s", s.Sources(), diff)
	}
	if err := s.Replace("header", "E: f", ""); err != nil || s.all()["header"] != "E: f" || len(earlier.Client.Headers) != 2 {
		t.Errorf("replaced: %v, %v", s.all(), err)
	}
}

// Engines have the settings over those of a file, for prefill and decode engines alike.
func TestDeployment(t *testing.T) {
	base := engine.Default()
	base.Engines, base.Prefill, base.Decode, base.DecodeEngine = 0, 2, 3, &engine.Config{MaxSeqs: 9, MaxBatchedTokens: 99}
	s := set(t, "seed=5", "max-num-seqs=7", "step-base=3ms")
	d, err := s.Deployment(base)
	if err != nil || d.Seed != 5 || d.Prefill != 2 || d.Engine.MaxSeqs != 7 || d.DecodeEngine.MaxSeqs != 7 || d.DecodeEngine.Costs.Step != 3*engine.Millisecond || base.DecodeEngine.MaxSeqs != 9 {
		t.Errorf("%+v, %v", d, err)
	}
	for texts, want := range map[string]string{"engines=2": "use prefill-engines and decode-engines", "max-num-batched-tokens=4 max-num-seqs=5": "max-num-batched-tokens 4 is below max-num-seqs 5"} {
		s := set(t, strings.Fields(texts)...)
		if _, err := s.Deployment(base); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", texts, err)
		}
	}
}

// A file is refused with a reason, or its settings are read again from what they are written
// as.
func FuzzFile(f *testing.F) {
	for _, text := range []string{"rate: 4\nurl: [http://a, 'x']\n", `{"settings": {"version": 1, "max_turns": 2}, "outcome": {}}`, "header:\n- 'A: b'\nverdict: lag=1ms\n", "- - - 1", "a: &b\n  c: *b", "timeout: ,,5\n", "isl: |\n  3"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, err := parse(text, "f")
		if err != nil {
			return
		}
		var s, again Settings
		for _, e := range entries {
			for _, text := range e.Texts {
				_ = s.Set(e.Name, text, e.Place) // or it is refused
			}
		}
		_ = s.Check()
		written, err := json.Marshal(s)
		if err := errors.Join(err, json.Unmarshal(written, &again)); err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if a, b := maps.Collect(s.Given()), maps.Collect(again.Given()); !strings.Contains(string(written), "***") && !maps.Equal(a, b) {
			t.Errorf("%v is read again as %v", a, b)
		}
	})
}
