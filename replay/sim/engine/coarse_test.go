package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Without Token events, all else is the same, at the same times.
func TestCoarseDeploymentEqualsFullOne(t *testing.T) {
	leaps := 0
	rapid.Check(t, func(t *rapid.T) {
		d, arrivals := anyDeployment(t), anyArrivals(t, true)
		if rapid.Bool().Draw(t, "roomy") { // long runs of equal steps
			d.Engine.KVBlocks *= 50
			d.Engine.MaxModelLen *= 50
			for i := range arrivals {
				arrivals[i].output *= rapid.IntRange(1, 40).Draw(t, "longer")
				arrivals[i].at *= 10
				arrivals[i].cancelAfter *= 10
			}
		}
		d.Engine.Costs.ContextToken += Cost(rapid.IntRange(0, 999).Draw(t, "picoseconds"))
		full := must(d.New())
		coarse := must(d.NewCoarse())
		want := play(t, full, full.BlockSize(), arrivals, func() {})
		got := play(t, coarse, coarse.BlockSize(), arrivals, func() {
			for _, e := range coarse.front.engines {
				if e.stepping && e.leap.steps > 1 {
					leaps++
				}
			}
		})
		tokens := func(e Event) bool { return e.Kind == Token }
		got.events, want.events = slices.DeleteFunc(got.events, tokens), slices.DeleteFunc(want.events, tokens)
		lines, wanted := eventLines(got), eventLines(want)
		// Events of several engines at one time have no order.
		slices.Sort(lines)
		slices.Sort(wanted)
		if !slices.Equal(lines, wanted) {
			t.Fatalf("%v, %+v, %+v, - with tokens, + without:\n%s", d, d.Engine, d.Transfer, cmp.Diff(wanted, lines))
		}
		if a, b := coarse.Stats(), full.Stats(); a != b {
			t.Fatalf("%+v\nwith tokens %+v", a, b)
		}
	})
	if !t.Failed() && leaps == 0 {
		t.Error("no draw had a leap")
	}
}

// A look at a coarse deployment finds the same state at any time.
func TestCoarseStats(t *testing.T) {
	d := Deployment{Engine: Config{Costs: Costs{Step: Millisecond, ContextToken: 300 * Picosecond}, KVBlocks: 100}}
	full, _ := d.New()
	coarse, _ := d.NewCoarse()
	for _, c := range []*Cluster{full, coarse} {
		for range 3 {
			if err := c.Submit(0, &Request{Prompt: promptOf(16, sequence(20, 1)...), Output: 90}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for now := time.Duration(0); now < 100*ms; now += 777 * time.Microsecond {
		full.Advance(now, nil)
		coarse.Advance(now, nil)
		full.Next()
		coarse.Next()
		if a, b := coarse.Stats(), full.Stats(); a != b {
			t.Fatalf("at %v: %+v\nwith tokens %+v", now, a, b)
		}
	}
}

// A request of 1000 tokens in a batch of others.
func BenchmarkAnswer(b *testing.B) {
	for _, coarse := range []bool{false, true} {
		for _, sequences := range []int{1, 16, 128} {
			b.Run(fmt.Sprintf("coarse=%v/sequences=%d", coarse, sequences), func(b *testing.B) {
				d := Deployment{Engine: Config{Costs: Costs{Step: Millisecond, ContextToken: Nanosecond}, KVBlocks: 1 << 20}}
				c, err := d.New()
				if coarse {
					c, err = d.NewCoarse()
				}
				if err != nil {
					b.Fatal(err)
				}
				var events []Event
				at, submitted := time.Duration(0), 0
				submit := func() {
					submitted++
					if err := c.Submit(at, &Request{Prompt: promptOf(16, uint64(submitted)), Output: 1000 + submitted%7}); err != nil {
						b.Fatal(err)
					}
				}
				for range sequences {
					submit()
				}
				for b.Loop() {
					for ended := false; !ended; {
						at, _ = c.Next()
						events = c.Advance(at, events[:0])
						for _, e := range events {
							if e.Kind == Finished {
								ended = true
								submit()
							}
						}
					}
				}
			})
		}
	}
}
