package experiment

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"moontide/replay/runfile"
	"moontide/replay/settings"
)

func TestPlannedRuns(t *testing.T) {
	urls := Axis{Setting: "url", Values: []string{"http://a", "http://b"}, Labels: []string{"a", "b"}}
	type run struct {
		Folder      string
		Requests    int
		Concurrency int
		Closed      bool
	}
	for _, test := range []struct {
		name   string
		base   settings.Settings
		points []Point
		want   []run
		fail   string
	}{
		{"ten requests for each in flight", settings.Settings{}, Combine(nil, Axis{Setting: "max-concurrency", Values: []string{"1", "128"}}),
			[]run{{"concurrency-1", 10, 1, true}, {"concurrency-128", 1280, 128, true}}, ""},
		{"all deployments at a level, then the next", settings.Settings{Pacing: settings.Pacing{Limit: 7}}, Combine(nil, Axis{Setting: "max-concurrency", Values: []string{"4", "2"}}, urls),
			[]run{{"a-concurrency-4", 7, 4, true}, {"b-concurrency-4", 7, 4, true}, {"a-concurrency-2", 7, 2, true}, {"b-concurrency-2", 7, 2, true}}, ""},
		{"a minute at a rate, under a limit", settings.Settings{MaxConcurrency: 9}, Combine(nil, Axis{Setting: "rate", Values: []string{"0.01", "2.51"}}),
			[]run{{"rate-0.01", 10, 9, false}, {"rate-2.51", 151, 9, false}}, ""},
		{"shapes and engines", settings.Settings{}, Combine(nil, Axis{Setting: "isl", Values: []string{"3000"}}, Axis{Setting: "osl", Values: []string{"150"}}, Axis{Setting: "engines", Values: []string{"2"}}, Axis{Setting: "max-sessions", Values: []string{"3"}}),
			[]run{{"engines-2-3000-150-sessions-3", 30, 0, true}}, ""},
		{"all of a trace", settings.Settings{Trace: settings.Trace{Path: "t.jsonl"}}, Combine(nil, Axis{Setting: "speedup", Values: []string{"2"}}), []run{{"speedup-2", 0, 0, false}}, ""},
		{"all at once", settings.Settings{}, Combine(nil, Axis{Setting: "rate", Values: []string{"inf"}}), nil, "limit is needed with an infinite rate"},
		{"not a rate", settings.Settings{}, Combine(nil, Axis{Setting: "rate", Values: []string{"-1"}}), nil, "rate must be positive: -1"},
	} {
		s := Set{Base: Config{Settings: test.base}, Points: test.points}
		var got []run
		var failed error
		for _, p := range test.points {
			trial, err := s.plan(p)
			cfg, errConfig := s.config(trial, "", "")
			if err != nil || errConfig != nil {
				failed = fmt.Errorf("%w%w", err, errConfig)
				continue
			}
			got = append(got, run{p.Folder(), cfg.Pacing.Limit, cfg.MaxConcurrency, cfg.Closed})
		}
		if diff := cmp.Diff(test.want, got); diff != "" || (test.fail == "") != (failed == nil) || failed != nil && !strings.Contains(failed.Error(), test.fail) {
			t.Errorf("%s: %v, -want +got:\n%s", test.name, failed, diff)
		}
	}
}

// Each run of a set has a folder of its own, within that of the set.
func TestRunsHaveFoldersOfTheirOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rates []string
		for _, level := range rapid.SliceOfNDistinct(rapid.Float64Range(1e-6, 1e6), 1, 6, rapid.ID).Draw(t, "rates") {
			rates = append(rates, settings.FormatNumber(level))
		}
		labels := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9]([a-z0-9._-]{0,4}[a-z0-9._])?`), 1, 4, rapid.ID).Draw(t, "labels")
		names := map[string]bool{}
		for _, p := range Combine(nil, Axis{"rate", rates, nil}, Axis{"url", labels, labels}) {
			if name := p.Folder(); names[name] || strings.ContainsAny(name, "/\\ ") {
				t.Fatalf("a second %q, or no name of a file", name)
			}
			names[p.Folder()] = true
		}
	})
	same := Set{Dir: t.TempDir() + "/set", Points: Combine(nil, Axis{Setting: "isl", Values: []string{"1", "1:2"}}, Axis{Setting: "osl", Values: []string{"2:3", "3"}})}
	if _, err := same.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "1:2:3") {
		t.Errorf("two runs with the folder 1-2-3: %v", err)
	}
	if p := (Point{Name: "x"}).With(runfile.Value{Setting: "rate", Text: "1"}); p.Folder() != "x" || p.String() != "x" {
		t.Errorf("%v in %s", p, p.Folder())
	}
}
