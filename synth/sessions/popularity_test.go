package sessions

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"moontide/synth"
	"moontide/trace"
)

// regimeStarts has sessions of ten templates; in the middle third, most have one of
// two others.
func regimeStarts(n int, seed uint64) (starts []templateStart) {
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		t := 1 + random.IntN(10)
		if i >= n/3 && i < 2*n/3 && random.Float64() < .7 {
			t = 11 + random.IntN(2)
		}
		starts = append(starts, templateStart{float64(i), t})
	}
	return starts
}

// The popularity changes where the source's does, and a steady one does not.
func TestPopularityIsSplitWhereItChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		parts := splitPopularity(regimeStarts(3000, seed), 0)
		if len(parts) != 3 || math.Abs(parts[1][0].at-1000) > 10 || math.Abs(parts[2][0].at-2000) > 10 {
			t.Errorf("seed %d: %d parts", seed, len(parts))
		}
		random := rand.New(rand.NewPCG(seed, 1))
		for _, templates := range []int{1, 2, 10, 300} {
			var steady []templateStart
			for i := range 3000 {
				steady = append(steady, templateStart{float64(i), 1 + random.IntN(templates)})
			}
			if parts := splitPopularity(steady, 0); len(parts) != 1 {
				t.Errorf("seed %d: a steady popularity of %d templates has %d parts", seed, templates, len(parts))
			}
		}
	}
}

// Templates that are not listed in a regime come as often as all of them did there,
// and never those that are listed.
func TestUnlistedTemplates(t *testing.T) {
	regimes := []templateRegime{{UntilMs: 100, Templates: [][2]int{{0, 25}, {1, 75}}}, {UntilMs: 200, Templates: [][2]int{{2, 10}}}}
	c := client{clientFile: &clientFile{TemplateRegimes: regimes}, regimes: regimePopularities(regimes)}
	for _, t := range [][2]int{{1, 75}, {2, 10}, {3, 30}} {
		c.popularity.Add(t[0], t[1])
	}
	random := rand.New(rand.NewPCG(1, 1))
	counts := map[int]int{}
	for range 10_000 {
		counts[c.templateAt(50, random.Float64)]++
		if got := c.templateAt(100, random.Float64); got != 2 {
			t.Fatalf("the second regime has template %d", got)
		}
		if got := c.templateAt(1e9, random.Float64); got != 2 {
			t.Fatalf("after the last regime comes template %d", got)
		}
	}
	if counts[0] != 0 || math.Abs(float64(counts[1])-7500) > 150 || math.Abs(float64(counts[3])/float64(counts[2])-3) > .3 {
		t.Errorf("drawn %v", counts)
	}
}

// A prompt that is shared only for a third of the trace is a template, and is drawn
// only there.
func TestTemplatesOfOneRegime(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 3))
	free := uint64(1000)
	var rows []trace.Request
	for i := range 3000 {
		first := uint64(0)
		if i >= 1000 && i < 2000 {
			first = 1
		}
		free++
		rows = append(rows, trace.Request{Timestamp: trace.Some(float64(i)*1000 + math.Round(900*random.Float64())), InputLength: 1024, OutputLength: 10, HashIDs: []uint64{first, free}})
	}
	m, err := Fit(trace.FromSlice(rows), Options{BlockSize: 512})
	if err != nil {
		t.Fatal(err)
	}
	if m.Templates() != 2 {
		t.Fatalf("%d templates", m.Templates())
	}
	wrong := 0
	for r, err := range m.Requests(1, 3000) {
		if err != nil {
			t.Fatal(err)
		}
		if middle := r.Timestamp.Value >= 1e6 && r.Timestamp.Value < 2e6; middle != (r.HashIDs[0] == m.file.FirstBlock+1) {
			wrong++
		}
	}
	if wrong > 60 {
		t.Errorf("%d of 3,000 requests have the template of another time", wrong)
	}
}

func TestTemplateRegimesAreChecked(t *testing.T) {
	one := [][2]int{{1, 5}}
	for want, f := range map[string]clientFile{
		"template_regimes[1].until_ms: 5 is not in 10..4e+15":                               {Templates: one, TemplateRegimes: []templateRegime{{10, one}, {5, one}}},
		"template_regimes[0].templates[0][0]: 2 is none of the client's templates":          {Templates: one, TemplateRegimes: []templateRegime{{10, [][2]int{{2, 5}}}}},
		"template_regimes[0].templates[0][1], the sessions: 4 is not in 5..2.147483647e+09": {Templates: one, TemplateRegimes: []templateRegime{{10, [][2]int{{0, 4}}}}},
	} {
		check := func() (err error) {
			defer synth.Catch(&err)
			f.checkTemplateRegimes()
			return nil
		}
		if got := fmt.Sprint(check()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A few sessions unlike all others are noted.
func TestLongSessionsAreNoted(t *testing.T) {
	t.Parallel()
	for long, want := range map[int]int{0: 0, 1: 1, 4: 1, 5: 0} {
		var rows []trace.Request
		free := uint64(1)
		for i := range 1000 {
			session := "single" + fmt.Sprint(i)
			if long > 0 && i%2 == 0 {
				session = "long" + fmt.Sprint(i/2%long)
			}
			free++
			rows = append(rows, trace.Request{Timestamp: trace.Some(float64(i) * 1000), InputLength: 512, OutputLength: 10, SessionID: session, HashIDs: []uint64{free}})
		}
		m, err := Fit(trace.FromSlice(rows), Options{BlockSize: 512})
		if err != nil {
			t.Fatal(err)
		}
		notes := slices.DeleteFunc(m.Notes(), func(note string) bool {
			return !strings.Contains(note, " much larger than all others, with 500 of 1000 requests")
		})
		if len(notes) != want {
			t.Errorf("%d long sessions: notes %q", long, notes)
		}
	}
}
