// Command search finds the largest load of random simulated deployments with
// bench.SearchLoad, compares each answer with a reference of long runs, and that of
// queues with theory. It writes README.md and results.json beside it, keeps the results of
// an interrupted run, and needs about an hour on two cores:
//
//	go run ./.ci/search
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"moontide/.ci/results"
	"moontide/analyze/run"
	"moontide/replay/bench"
)

// measurements is the content of results.json.
type measurements struct {
	Seed uint64   `json:"seed"` // of the random deployments
	Rows []result `json:"rows"`
}

// result is the outcome of a task.
type result struct {
	Name      string     `json:"name"`
	Axis      bench.Axis `json:"axis"`
	SLO       string     `json:"slo"`
	Limited   string     `json:"limited"` // the objective that fails next to the answer
	Found     float64    `json:"found"`
	From      float64    `json:"from"` // 95 % confidence interval
	To        float64    `json:"to"`
	Truth     float64    `json:"truth"`
	Error     float64    `json:"error"` // standard error of the truth
	Theory    bool       `json:"theory"`
	Runs      int        `json:"runs"`
	NoneFound string     `json:"none_found,omitempty"` // why there is no answer
	Endless   bool       `json:"endless,omitempty"`    // and there is none: all loads meet the objectives
}

func (r *result) off() float64 { return r.Found/r.Truth - 1 }

// within reports whether the answer is within 3 % of the truth, or the same number of
// requests in flight.
func (r *result) within() bool {
	same := r.Axis == bench.Concurrency && math.Floor(r.Found) == math.Floor(r.Truth)
	return r.NoneFound == "" && (same || math.Abs(r.off()) <= 0.03)
}

// covers reports whether the interval has the truth, within twice its error.
func (r *result) covers() bool {
	return r.NoneFound == "" && r.From <= r.Truth+2*r.Error && r.Truth-2*r.Error <= r.To
}

func main() {
	deployments := flag.Int("deployments", 100, "number of random deployments")
	most := flag.Int("most", math.MaxInt, "search at most so many, and keep the results for the next time")
	seed := flag.Uint64("seed", 2027, "seed of the random deployments")
	folder := flag.String("folder", ".ci/search", "folder of README.md and results.json")
	verbose := flag.Bool("verbose", false, "print the runs of each search")
	render := flag.Bool("render", false, "write README.md from results.json and search nothing")
	flag.Parse()
	debug.SetGCPercent(50)
	if *render {
		*most = 0
	}
	w := work{measurements: measurements{Seed: *seed}, folder: results.Folder(*folder), most: *most, verbose: *verbose}
	if err := w.do(*deployments); err != nil {
		log.Fatal(err)
	}
}

// do does the tasks that have no results yet, and writes the page. Deployments that meet
// their objectives under any load are replaced.
func (w *work) do(deployments int) error {
	if err := w.read(); err != nil {
		return err
	}
	for _, t := range queues() {
		if _, err := w.result(t); err != nil {
			return err
		}
	}
	for number := 1; deployments > 0; number++ {
		r, err := w.result(drawTask(w.Seed, number))
		if err != nil {
			return err
		}
		if r == nil || !r.Endless {
			deployments--
		}
	}
	return w.folder.WritePage(page(w.measurements))
}

type work struct {
	measurements
	folder  results.Folder
	most    int // searches left
	verbose bool
}

func (w *work) read() error {
	var known measurements
	if err := w.folder.Read(&known); err != nil {
		return err
	}
	if known.Seed == w.Seed {
		w.Rows = known.Rows
	}
	return nil
}

// result returns the result of a task, nil if it is not known and no searches are left.
func (w *work) result(t task) (*result, error) {
	if i := slices.IndexFunc(w.Rows, func(r result) bool { return r.Name == t.name }); i >= 0 {
		return &w.Rows[i], nil
	}
	if w.most == 0 {
		return nil, nil
	}
	w.most--
	r, err := t.solve(w.verbose)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	log.Printf("%s: %s %s: %.4g (%.4g to %.4g), truth %.4g +- %.4g, off %+.1f %%, %d runs %s", r.Name, r.Axis, r.SLO,
		r.Found, r.From, r.To, r.Truth, r.Error, 100*r.off(), r.Runs, r.NoneFound)
	w.Rows = append(w.Rows, r)
	return &r, w.folder.Write(w.measurements)
}

func (t *task) solve(verbose bool) (r result, err error) {
	r = result{Name: t.name, Axis: t.axis, SLO: t.slo, Truth: t.theory, Theory: t.theory > 0}
	dir, err := os.MkdirTemp("", "search-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	conditions, err := run.ParseConditions(t.slo)
	if err != nil {
		return r, err
	}
	var gates []run.Gate
	for _, c := range conditions {
		gates = append(gates, run.Gate{Condition: c})
	}
	found, err := bench.SearchLoad(context.Background(), bench.LoadSearchConfig{
		SweepConfig: bench.SweepConfig{
			Sweep: bench.Sweep{Axis: t.axis, Targets: []bench.Target{{}}},
			Run:   bench.Config{Virtual: true, Engines: t.deployment}, Dir: filepath.Join(dir, "search"),
			Trace: func(leg bench.Leg) (bench.Trace, error) {
				return bench.Trace{Name: leg.Name, Requests: t.requests(leg), BlockSize: 512}, nil
			},
		},
		Gates: gates, MinRequests: t.minimum,
		EachLeg: func(l bench.LoadLeg) {
			if verbose {
				log.Printf("  %v: %d requests, excess %+.4f +- %.4f, growth %.3g, served %.4f +- %.4f, %v", l.Leg, l.Prompts, l.Excess, l.Error, l.Growth, l.Served, l.ServedError, l.Judgements)
			}
		},
	})
	if err != nil {
		return r, err
	}
	f := found[0]
	a := f.Answer
	r.Found, r.From, r.To, r.Runs = a.Estimate, a.From, a.To, len(f.Legs)
	near := a.Estimate
	if !a.Found || !a.Limited {
		r.NoneFound = fmt.Sprintf("no bracket after %d runs %s", r.Runs, f.Stopped)
		near = f.Legs[len(f.Legs)-1].Level
		if r.Endless, err = t.endless(8*near, gates); r.Endless || err != nil {
			return r, err
		}
	} else if at := f.At(a.Missed); at.Growth > 0 {
		r.Limited = "the queue grows"
	} else {
		r.Limited = at.Tightest.Gate.Condition.String()
	}
	if !r.Theory {
		r.Truth, r.Error, err = t.refer(near, gates)
	}
	return r, err
}
