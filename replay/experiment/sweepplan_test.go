package experiment_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"moontide/replay/experiment"
)

func TestLegs(t *testing.T) {
	a, b := experiment.Target{Label: "a", URL: "http://a"}, experiment.Target{Label: "b", URL: "http://b"}
	tests := []struct {
		name  string
		sweep experiment.Sweep
		want  []experiment.Leg
	}{
		{"ten requests for each in flight",
			experiment.Sweep{Axis: experiment.Concurrency, Levels: []float64{1, 128}, Targets: []experiment.Target{{}}},
			[]experiment.Leg{
				{Name: "concurrency-1", Axis: experiment.Concurrency, Level: 1, Prompts: 10, MaxConcurrency: 1},
				{Name: "concurrency-128", Axis: experiment.Concurrency, Level: 128, Prompts: 1280, MaxConcurrency: 128},
			}},
		{"all targets at a level, then the next",
			experiment.Sweep{Axis: experiment.Concurrency, Levels: []float64{4, 2}, Prompts: 7, Targets: []experiment.Target{a, b}},
			[]experiment.Leg{
				{Name: "a-concurrency-4", Target: a, Axis: experiment.Concurrency, Level: 4, Prompts: 7, MaxConcurrency: 4},
				{Name: "b-concurrency-4", Target: b, Axis: experiment.Concurrency, Level: 4, Prompts: 7, MaxConcurrency: 4},
				{Name: "a-concurrency-2", Target: a, Axis: experiment.Concurrency, Level: 2, Prompts: 7, MaxConcurrency: 2},
				{Name: "b-concurrency-2", Target: b, Axis: experiment.Concurrency, Level: 2, Prompts: 7, MaxConcurrency: 2},
			}},
		{"a minute at a rate, under a ceiling",
			experiment.Sweep{Axis: experiment.Rate, Levels: []float64{0.01, 2.51}, Ceiling: 9, Targets: []experiment.Target{a}},
			[]experiment.Leg{
				{Name: "a-rate-0.01", Target: a, Axis: experiment.Rate, Level: 0.01, Prompts: 10, MaxConcurrency: 9},
				{Name: "a-rate-2.51", Target: a, Axis: experiment.Rate, Level: 2.51, Prompts: 151, MaxConcurrency: 9},
			}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, test.sweep.Legs()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.name, diff)
		}
	}
}

// Each run of a sweep has a unique folder and salt.
func TestLegsHaveNamesOfTheirOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.Float64Range(1e-6, 1e6)
		s := experiment.Sweep{Axis: experiment.Rate, Levels: rapid.SliceOfNDistinct(level, 1, 6, rapid.ID).Draw(t, "levels")}
		label := rapid.StringMatching(`[a-z0-9][a-z0-9._-]{0,5}`)
		for _, l := range rapid.SliceOfNDistinct(label, 1, 4, rapid.ID).Draw(t, "labels") {
			s.Targets = append(s.Targets, experiment.Target{Label: l, URL: "http://x"})
		}
		names := map[string]bool{}
		for _, leg := range s.Legs() {
			if names[leg.Name] || strings.ContainsAny(leg.Name, "/\\ ") {
				t.Fatalf("a second %q, or no name of a file", leg.Name)
			}
			names[leg.Name] = true
		}
	})
}

func TestParseLevels(t *testing.T) {
	tests := []struct {
		axis experiment.Axis
		text string
		want []float64
		fail string
	}{
		{experiment.Concurrency, "1,2,4", []float64{1, 2, 4}, ""},
		{experiment.Concurrency, " 8 ", []float64{8}, ""},
		{experiment.Rate, "0.5,10", []float64{0.5, 10}, ""},
		{experiment.Concurrency, "", nil, `"" is not a whole number from 1 to 1000000`},
		{experiment.Concurrency, "0", nil, `"0" is not a whole number`},
		{experiment.Concurrency, "1000001", nil, `not a whole number from 1 to 1000000`},
		{experiment.Concurrency, "2,1,2.0", nil, "2 is repeated"},
		{experiment.Concurrency, "2..4,8", []float64{2, 3, 4, 8}, ""},
		{experiment.Concurrency, "1 .. 8 .. 3", []float64{1, 4, 7}, ""},
		{experiment.Concurrency, "1e3", []float64{1000}, ""},
		{experiment.Concurrency, "4..2", nil, "the range 4..2 is empty"},
		{experiment.Concurrency, "1..3,2", nil, "2 is repeated"},
		{experiment.Concurrency, "1..4..2..1", nil, `"2..1" is not a whole number`},
		{experiment.Concurrency, "1..1000000", nil, "more than 1000 levels"},
		{experiment.Rate, "1..3", nil, `"1..3" must be a number above 0`},
		{experiment.Rate, "0", nil, `"0" must be a number above 0`},
		{experiment.Rate, "-1", nil, `"-1" must be a number above 0`},
		{experiment.Rate, "2,inf", []float64{2, math.Inf(1)}, ""},
		{experiment.Rate, "inf,+Inf", nil, "+Inf is repeated"},
		{experiment.Rate, "1000001", nil, `"1000001" must be a number above 0 and at most 1000000, or inf`},
		{experiment.Concurrency, "inf", nil, `"inf" is not a whole number`},
	}
	for _, test := range tests {
		got, err := experiment.ParseLevels(test.axis, test.text)
		checkParsed(t, test.text, got, err, test.want, test.fail)
	}
	if _, err := experiment.ParseLevels(experiment.Concurrency, levels(1001)); err == nil || !strings.Contains(err.Error(), "more than 1000 levels") {
		t.Errorf("1001 levels: %v", err)
	}
}

func levels(n int) string {
	var all []string
	for i := range n {
		all = append(all, experiment.FormatLevel(float64(i+1)))
	}
	return strings.Join(all, ",")
}

func TestParseTargets(t *testing.T) {
	tests := []struct {
		texts []string
		want  []experiment.Target
		fail  string
	}{
		{nil, []experiment.Target{{}}, ""},
		{[]string{"http://h:1"}, []experiment.Target{{URL: "http://h:1"}}, ""},
		{[]string{"http://h:1/v1?a=b"}, []experiment.Target{{URL: "http://h:1/v1?a=b"}}, ""},
		{[]string{"a=http://h:1?x=y", "b.2=http://h:2"}, []experiment.Target{{Label: "a", URL: "http://h:1?x=y"}, {Label: "b.2", URL: "http://h:2"}}, ""},
		{[]string{"a=http://h:1", "http://h:2"}, nil, "need labels: label=http://h:2"},
		{[]string{"a=http://h:1", "A=http://h:2"}, nil, "two URLs have the label A"},
		{[]string{"a="}, nil, `"a=" has no URL`},
		{[]string{""}, nil, `"" has no URL`},
		{[]string{"../x=http://h:1"}, nil, `"../x" is not a label`},
		{[]string{strings.Repeat("a", 41) + "=http://h:1"}, nil, "is not a label of 1 to 40"},
	}
	for _, test := range tests {
		got, err := experiment.ParseTargets(test.texts)
		checkParsed(t, strings.Join(test.texts, " "), got, err, test.want, test.fail)
	}
}

func checkParsed[T comparable](t *testing.T, text string, got []T, err error, want []T, fail string) {
	t.Helper()
	switch {
	case fail == "" && (err != nil || !slices.Equal(got, want)):
		t.Errorf("%q: %v, %v, want %v", text, got, err, want)
	case fail != "" && (err == nil || !strings.Contains(err.Error(), fail)):
		t.Errorf("%q: %v, %v, want the error %q", text, got, err, fail)
	}
}
