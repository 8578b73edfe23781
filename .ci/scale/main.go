// Command scale measures what limits runs of many parts.
//
//	go run ./.ci/scale -moontide BINARY [-records 1000000] [-parts 64]
//	go run ./.ci/scale -meet 10,100,1000
//
// The first reports a run of many parts, and one of one process with the same records,
// in turns. The second has parts meet over loopback, and measures part 1.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"moontide/replay"
	"moontide/replay/runfile"
	"moontide/trace"
)

func main() {
	log.SetFlags(0)
	moontide := flag.String("moontide", "moontide", "`BINARY` to measure")
	records := flag.Int("records", 1_000_000, "`N` records of the run")
	parts := flag.Int("parts", 64, "`N` parts")
	repeats := flag.Int("repeats", 3, "`N` reports of each folder")
	folder := flag.String("folder", "", "`DIR` for the run folders, which stay; a temporary one by default")
	meeting := flag.String("meet", "", "`N,N,...` parts that meet")
	lead := flag.Int("lead", 0, "lead `N` parts, as -meet has it done")
	flag.Parse()
	if err := barriers(*meeting, *lead, *folder); err != nil {
		log.Fatal(err)
	}
	if *meeting != "" || *lead > 0 {
		return
	}
	dir := *folder
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "moontide-scale-"); err != nil {
			log.Fatal(err)
		}
		defer os.RemoveAll(dir)
	}
	if err := measure(*moontide, dir, *records, *parts, *repeats); err != nil {
		log.Fatal(err)
	}
}

func barriers(meeting string, lead int, folder string) error {
	if lead > 0 {
		return leadParts(lead, folder)
	}
	var numbers []int
	for _, text := range strings.FieldsFunc(meeting, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 2 {
			return fmt.Errorf("-meet %s: want numbers from 2", meeting)
		}
		numbers = append(numbers, n)
	}
	if len(numbers) == 0 {
		return nil
	}
	return meetAll(numbers)
}

// measure reports both folders in turns and prints the median cost of each.
func measure(moontide, dir string, records, parts, repeats int) error {
	single, several := filepath.Join(dir, "single"), filepath.Join(dir, "parts")
	if _, err := os.Stat(single); errors.Is(err, os.ErrNotExist) {
		if err := makeRuns(single, several, records, parts); err != nil {
			return err
		}
	}
	folders := []string{single, several}
	costs, outputs := map[string][]cost{}, map[string]string{}
	for range repeats {
		for _, folder := range folders {
			c, out, err := report(moontide, folder)
			if err != nil {
				return err
			}
			costs[folder], outputs[folder] = append(costs[folder], c), out
		}
	}
	fmt.Printf("| report of %d records in | wall time, s | CPU, s | peak memory, MB |\n| --- | ---: | ---: | ---: |\n", records)
	var medians []cost
	for i, folder := range folders {
		c := median(costs[folder])
		medians = append(medians, c)
		fmt.Printf("| %s | %.1f | %.1f | %.0f |\n", []string{"one folder", fmt.Sprintf("%d folders", parts)}[i], c.wall.Seconds(), c.cpu.Seconds(), c.peakMB)
	}
	fmt.Printf("| ratio | %.2f | %.2f | %.2f |\n", float64(medians[1].wall)/float64(medians[0].wall), float64(medians[1].cpu)/float64(medians[0].cpu), medians[1].peakMB/medians[0].peakMB)
	fmt.Printf("\nlines of metrics that differ: %d\n", differences(outputs[single], outputs[several]))
	return nil
}

// cost is what a command took.
type cost struct {
	wall, cpu time.Duration
	peakMB    float64
}

func median(all []cost) cost {
	slices.SortFunc(all, func(a, b cost) int { return cmp.Compare(a.cpu, b.cpu) })
	return all[len(all)/2]
}

// report returns the metrics of a run, as lines of JSON.
func report(moontide, folder string) (cost, string, error) {
	cmd := exec.Command(moontide, "report", folder, "--json")
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	begun := time.Now()
	err := cmd.Run()
	c := cost{wall: time.Since(begun)}
	if state := cmd.ProcessState; state != nil {
		c.cpu = state.UserTime() + state.SystemTime()
		c.peakMB = float64(state.SysUsage().(*syscall.Rusage).Maxrss) / 1024
		if state.ExitCode() == 3 { // INVALID: the records are made up
			err = nil
		}
	}
	if err != nil {
		return c, "", fmt.Errorf("report of %s: %w: %s", folder, err, &messages)
	}
	return c, out.String(), nil
}

// differences prints the lines in which two summaries differ, and returns their number.
func differences(a, b string) int {
	left, right := metricsOf(a), metricsOf(b)
	n := 0
	for i := range max(len(left), len(right)) {
		of := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return ""
		}
		if l, r := of(left), of(right); l != r {
			fmt.Printf("%s\n%s\n", l, r)
			n++
		}
	}
	return n
}

// metricsOf returns the lines of a summary without what only a run of several parts has:
// the parts, with their evidence and the verdict that follows from it, and notes.
func metricsOf(summary string) []string {
	var all any
	if err := json.Unmarshal([]byte(summary), &all); err != nil {
		return []string{err.Error()}
	}
	text, err := json.MarshalIndent(withoutParts(all), "", "  ")
	if err != nil {
		return []string{err.Error()}
	}
	return strings.Split(string(text), "\n")
}

func withoutParts(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"name", "notes", "parts", "evidence"} {
			delete(v, key)
		}
		for key, value := range v {
			v[key] = withoutParts(value)
		}
	case []any:
		for i := range v {
			v[i] = withoutParts(v[i])
		}
	}
	return v
}

// makeRuns writes the same records into one folder, and into those of the parts.
func makeRuns(single, several string, records, parts int) error {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := runfile.Run{
		Version: "scale", Started: start, Ended: start.Add(time.Hour), Rows: records, Sent: records,
		Target: runfile.Target{URL: "http://127.0.0.1:8000/v1/completions", Model: "m", Endpoint: "completions", Prompt: "tokens", IgnoreEOS: true, MinTokens: true},
		Trace:  runfile.Source{Name: "scale.jsonl", BlockSize: 512, DurationMS: float64(records)}, Schedule: "scale",
	}
	whole, err := runfile.Create(single, run)
	if err != nil {
		return err
	}
	all := runfile.Parts{RunID: "scale", Of: parts, By: trace.ByRequest, Rows: records, Schedule: "scale", Start: start, Ended: run.Ended}
	var writers []*runfile.Writer
	var infos []runfile.Run
	for i := range parts {
		clock := runfile.Clock{Reference: runfile.ClockOfPart1, Before: runfile.ClockOffset{At: start, BoundMS: 0.1}, After: runfile.ClockOffset{At: run.Ended, BoundMS: 0.1}}
		name := fmt.Sprintf("part-%d", i+1)
		all.Parts = append(all.Parts, runfile.PartState{Number: i + 1, Folder: name, State: runfile.PartEnded, Clock: clock})
		part := run
		part.Part = runfile.Part{RunID: "scale", Number: i + 1, Of: parts, By: trace.ByRequest, RunRows: records, Start: start, Clock: clock}
		part.Rows = (records + parts - 1 - i) / parts
		part.Sent = part.Rows
		w, err := runfile.Create(filepath.Join(several, name), part)
		if err != nil {
			return err
		}
		writers, infos = append(writers, w), append(infos, part)
	}
	if err := writeRecords(records, whole, writers); err != nil {
		return err
	}
	err = errors.Join(whole.WriteRun(run), whole.Close(), all.Write(several))
	for i, w := range writers {
		err = errors.Join(err, w.WriteRun(infos[i]), w.Close())
	}
	return err
}

// writeRecords writes records in the order in which their requests ended: a request each
// millisecond, with answers of 16 to 48 chunks.
func writeRecords(records int, whole *runfile.Writer, parts []*runfile.Writer) error {
	draw := rand.New(rand.NewPCG(1, 2))
	var pending []replay.Record // by the ends of their requests
	write := func(rec replay.Record) error {
		return errors.Join(whole.Record(rec), parts[rec.Row%len(parts)].Record(rec))
	}
	for row := range records {
		rec := anyRecord(draw, row)
		at, _ := slices.BinarySearchFunc(pending, rec, func(a, b replay.Record) int { return cmp.Compare(a.Done, b.Done) })
		pending = slices.Insert(pending, at, rec)
		for len(pending) > 0 && pending[0].Done < rec.Due {
			if err := write(pending[0]); err != nil {
				return err
			}
			pending = pending[1:]
		}
	}
	for _, rec := range pending {
		if err := write(rec); err != nil {
			return err
		}
	}
	return nil
}

func anyRecord(draw *rand.Rand, row int) replay.Record {
	due := time.Duration(row) * time.Millisecond
	sent := due + time.Duration(draw.IntN(100))*time.Microsecond
	at := sent + time.Duration(100_000+draw.IntN(400_000))*time.Microsecond
	chunks := 16 + draw.IntN(33)
	rec := replay.Record{Row: row, Due: due, Ready: due, Sent: trace.Some(sent), First: trace.Some(at), Chunks: chunks, Stamps: replay.KernelStamps, Status: 200}
	for range chunks - 1 {
		gap := time.Duration(5_000+draw.IntN(20_000)) * time.Microsecond
		rec.Gaps = append(rec.Gaps, gap)
		at += gap
	}
	rec.Last, rec.Done = trace.Some(at), at+time.Duration(draw.IntN(1000))*time.Microsecond
	rec.Timestamp, rec.InputLength, rec.OutputLength = trace.Some(float64(row)), 4096, chunks
	prefix := uint64(draw.IntN(1000))
	for block := range uint64(8) {
		id := prefix*8 + block
		if block >= 4 {
			id = 8000 + uint64(row)*4 + block
		}
		rec.HashIDs = append(rec.HashIDs, id)
	}
	rec.Counts = replay.Counts{Input: trace.Some(4096), Output: trace.Some(chunks), Cached: trace.Some(2048)}
	return rec
}
