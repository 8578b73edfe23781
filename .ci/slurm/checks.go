package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moontide/.ci/results"
	"moontide/replay/runfile"
)

// ranks of a run.
const ranks = 4

// summary is what the checks read of summary.json.
type summary struct {
	Completed int `json:"completed"`
	Own       struct {
		Verdict  string     `json:"verdict"`
		Evidence []evidence `json:"evidence"`
		Cache    struct {
			Predicted int `json:"predicted_tokens"`
		} `json:"cache"`
		Parts []struct {
			Bound float64 `json:"clock_bound_ms"`
			Rows  int     `json:"rows"`
		} `json:"parts"`
	} `json:"moontide"`
}

type evidence struct{ Check, Level, Text string }

func readSummary(dir string) (s summary, err error) {
	return s, results.ReadJSON(filepath.Join(dir, runfile.SummaryFile), &s)
}

func (s *summary) says(text string) bool {
	return slices.ContainsFunc(s.Own.Evidence, func(e evidence) bool { return e.Level != "VALID" && strings.Contains(e.Text, text) })
}

// judge returns the verdict with the evidence against VALID, and whether it is nothing
// but a busy machine, and not INVALID.
func (s *summary) judge() (text string, ok bool) {
	text, ok = s.Own.Verdict, s.Own.Verdict != "INVALID"
	for _, e := range s.Own.Evidence {
		if e.Level != "VALID" {
			text += "; " + e.Text
			ok = ok && strings.Contains(e.Text, "CPU was")
		}
	}
	return text, ok
}

func conversation(r *measurements, w *workshop) error {
	replay := func(name string, commands func(args []string) []*exec.Cmd, more ...string) (summary, int, error) {
		end, err := w.serve("--engines", "2")
		if err != nil {
			return summary{}, 0, err
		}
		defer end()
		dir := filepath.Join(w.dir, name)
		status, err := run(commands(append([]string{"replay", "traces/conversation.jsonl", "--url", w.url, "--out", dir}, more...)))
		if err != nil {
			return summary{}, 0, err
		}
		s, err := readSummary(dir)
		return s, status, err
	}
	single, _, err := replay("single", func(args []string) []*exec.Cmd { return []*exec.Cmd{exec.Command("moontide", args...)} })
	if err != nil {
		return err
	}
	for _, l := range launchers {
		s, status, err := replay(l.name, func(args []string) []*exec.Cmd { return l.commands(ranks, args) }, "--part", "auto")
		if err != nil {
			return err
		}
		rows, bound := 0, 0.0
		for _, p := range s.Own.Parts {
			rows, bound = rows+p.Rows, max(bound, p.Bound)
		}
		add := func(law, limit string, ok bool, measured string, args ...any) {
			r.add("conversation", l.name, law, limit, ok, measured, args...)
		}
		add("requests sent once and completed", "153", rows == 153 && s.Completed == 153, "%d", s.Completed)
		verdict, judged := s.judge()
		add("exit status and verdict", "0, VALID or SUSPECT for a busy CPU", judged && status == 0, "%d, %s", status, verdict)
		add("predicted cached tokens, as of one process", fmt.Sprint(single.Own.Cache.Predicted), s.Own.Cache.Predicted == single.Own.Cache.Predicted, "%d", s.Own.Cache.Predicted)
		add("warm-cache alarm", "no", !s.says("warm cache"), "%v", map[bool]string{true: "yes", false: "no"}[s.says("warm cache")])
		add("clock bound that the report prints", "0.2 ms", bound <= 0.2, "%.3f ms", bound)
	}
	return nil
}

// atOnce writes a trace of requests that are due at once.
func (w *workshop) atOnce(requests int) (path string, err error) {
	path = filepath.Join(w.dir, "at-once.jsonl")
	return path, os.WriteFile(path, []byte(strings.Repeat(`{"timestamp": 0, "input_length": 8, "output_length": 1}`+"\n", requests)), 0o644)
}

// starts measures when ranks sent their first requests.
func starts(r *measurements, w *workshop) error {
	const times = 20
	end, err := w.serve("--step-base", "0", "--prefill-per-token", "0", "--decode-per-sequence", "0", "--decode-per-context-token", "0")
	if err != nil {
		return err
	}
	defer end()
	trace, err := w.atOnce(ranks)
	if err != nil {
		return err
	}
	for _, l := range launchers {
		var corrected, wall, bounds []float64
		for i := range times {
			dir := filepath.Join(w.dir, fmt.Sprint(l.name, i))
			if _, err := run(l.commands(ranks, []string{"replay", trace, "--url", w.url, "--part", "auto", "--out", dir})); err != nil {
				return err
			}
			c, b, bound, err := startsOf(dir)
			if err != nil {
				return err
			}
			corrected, wall, bounds = append(corrected, c), append(wall, b), append(bounds, bound)
		}
		r.add("starts", l.name, fmt.Sprintf("the rank furthest from the common instant, corrected clocks, median of %d", times), "1 ms", middle(corrected) <= 1, "%.3f ms (worst %.3f)", middle(corrected), slices.Max(corrected))
		r.add("starts", l.name, "the same by the wall clock", "5 ms", middle(wall) <= 5, "%.3f ms (worst %.3f)", middle(wall), slices.Max(wall))
		r.add("starts", l.name, "clock bound, median", "0.2 ms", middle(bounds) <= 0.2, "%.3f ms (worst %.3f)", middle(bounds), slices.Max(bounds))
	}
	return nil
}

// startsOf returns how far from the common start the furthest part sent its first
// request, by the corrected clock and by the wall clock, and the clock bound.
func startsOf(dir string) (corrected, wall, bound float64, err error) {
	parts, err := runfile.ReadParts(dir)
	if err != nil {
		return 0, 0, 0, err
	}
	for _, folder := range parts.Folders(dir) {
		reader, err := runfile.Open(folder)
		if err != nil {
			return 0, 0, 0, err
		}
		first := time.Duration(math.MaxInt64)
		for rec, err := range reader.Records() {
			if err != nil {
				return 0, 0, 0, err
			}
			if rec.Sent.Set {
				first = min(first, rec.Sent.Value)
			}
		}
		reader.Close()
		info := reader.Run
		at := info.Started.Add(first)
		corrected = max(corrected, math.Abs(info.Part.Clock.ToReference(at).Sub(parts.Start).Seconds()*1000))
		wall = max(wall, math.Abs(at.Sub(parts.Start).Seconds()*1000))
		bound = max(bound, info.Part.Clock.BoundMS(info.Ended))
	}
	return corrected, wall, bound, nil
}

func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// barrier measures the time from the start of many processes to the common start of the
// run.
func barrier(r *measurements, w *workshop) error {
	const many, times = 64, 5
	end, err := w.serve()
	if err != nil {
		return err
	}
	defer end()
	trace, err := w.atOnce(many)
	if err != nil {
		return err
	}
	var all, whole, cpu []float64
	for i := range times {
		dir := filepath.Join(w.dir, fmt.Sprint(i))
		commands := pods(many, []string{"replay", trace, "--url", w.url, "--part", "auto", "--out", dir})
		begun := time.Now()
		j, err := launch(commands)
		if err != nil {
			return err
		}
		launched := time.Now()
		if _, err := j.measured(); err != nil {
			return err
		}
		parts, err := runfile.ReadParts(dir)
		if err != nil {
			return err
		}
		used := 0.0
		for _, c := range commands {
			used += (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
		}
		all, whole, cpu = append(all, parts.Start.Sub(launched).Seconds()), append(whole, parts.Start.Sub(begun).Seconds()), append(cpu, used)
	}
	r.add("barrier", "pods", fmt.Sprintf("from the start of the last process to the common start, median of %d", times), "2 s", middle(all) < 2,
		"%.2f s (worst %.2f; from that of the first process %.2f); the %d processes used %.1f s of CPU in all", middle(all), slices.Max(all), middle(whole), many, middle(cpu))
	return nil
}

// kill kills ranks of runs.
func kill(r *measurements, w *workshop) error {
	const each = 10
	random := rand.New(rand.NewPCG(20, 0))
	for _, l := range append(slices.Clip(launchers), script) {
		slowest, named, damaged, invalid, wrong := 0.0, 0, 0, 0, 0
		var killed []string
		for i := range each {
			rank, at := random.IntN(ranks), time.Duration(random.Float64()*8*float64(time.Second))
			if i == 0 {
				rank = 0
			}
			killed = append(killed, fmt.Sprintf("%d", rank))
			k, err := killOne(w, filepath.Join(w.dir, fmt.Sprint(l.name, i)), rank, at, l.rankVariable, func(args []string) []*exec.Cmd { return l.commands(ranks, args) })
			if err != nil {
				return err
			}
			slowest = max(slowest, k.took.Seconds())
			for is, n := range map[*int]bool{&named: k.named, &damaged: k.damaged, &invalid: k.invalid, &wrong: k.zero} {
				if n {
					*is++
				}
			}
		}
		add := func(law, limit string, ok bool, measured string, args ...any) {
			r.add("kill", l.name, law, limit, ok, measured, args...)
		}
		add("the others ended, slowest of "+fmt.Sprint(each), "10 s", slowest <= 10, "%.1f s (ranks %s)", slowest, strings.Join(killed, " "))
		add("runs that ended with exit status 0", "0", wrong == 0, "%d", wrong)
		add("runs whose other ranks name the lost part", fmt.Sprint(each), named == each, "%d", named)
		add("runs with a record that is not whole", "0", damaged == 0, "%d", damaged)
		add("runs reported INVALID, or without any record", fmt.Sprint(each), invalid == each, "%d", invalid)
	}
	return nil
}

// killing is what came of a killed rank.
type killing struct {
	took                          time.Duration // until all had ended
	named, damaged, invalid, zero bool
}

func killOne(w *workshop, dir string, rank int, at time.Duration, variable string, commands func(args []string) []*exec.Cmd) (k killing, err error) {
	end, err := w.serve("--engines", "2")
	if err != nil {
		return k, err
	}
	defer end()
	j, err := launch(commands([]string{"replay", "traces/conversation.jsonl", "--url", w.url, "--part", "auto", "--out", dir}))
	if err != nil {
		return k, err
	}
	process, err := findRank(variable, rank, dir)
	if err != nil {
		return k, err
	}
	time.Sleep(at)
	if err := process.Kill(); err != nil {
		return k, err
	}
	begun := time.Now()
	statuses := j.wait()
	k.took = time.Since(begun)
	k.zero = slices.Contains(statuses, 0)
	k.named = strings.Contains(j.said.String(), fmt.Sprintf("part %d of %d", rank+1, ranks)) || strings.Contains(j.said.String(), fmt.Sprintf("process rank %d", rank))
	records := 0
	for i := range ranks {
		n, damage, err := lines(filepath.Join(dir, fmt.Sprintf("part-%d", i+1)))
		if err != nil {
			return k, err
		}
		records, k.damaged = records+n, k.damaged || damage
	}
	cmd := exec.Command("moontide", "report", dir)
	cmd.Run()
	k.invalid = cmd.ProcessState.ExitCode() == 3 || records == 0 && cmd.ProcessState.ExitCode() == 1
	return k, nil
}

// lines returns the number of records of a part, and whether one is damaged.
func lines(dir string) (records int, damaged bool, err error) {
	reader, err := runfile.Open(dir)
	if os.IsNotExist(err) || err != nil && strings.Contains(err.Error(), "no such file") {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer reader.Close()
	for _, err := range reader.Records() {
		if err != nil {
			return records, false, err
		}
		records++
	}
	n, _ := reader.Damaged()
	return records, n > 0, nil
}
