package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"moontide/trace"
	"moontide/trace/format"
)

// roundTrip captures a replay, and compares the capture with what was sent.
func roundTrip(t *tools, every time.Duration, source string, flags ...string) ([]row, error) {
	server, proxy, path, err := t.between(append(paced(every), "--prefill-per-token", "0")...)
	if err != nil {
		return nil, err
	}
	defer server.end()
	_, dir, err := t.replay(source, proxy.url, flags...)
	said, failed := proxy.end()
	if err := cmp.Or(err, failed); err != nil {
		return nil, fmt.Errorf("%w: %s", err, said)
	}
	sent, err := read(filepath.Join(dir, "requests.jsonl"))
	if err != nil {
		return nil, err
	}
	seen, err := read(path)
	if err != nil {
		return nil, err
	}
	seen = seen[max(len(seen)-len(sent), 0):] // the probe comes first
	slices.SortStableFunc(sent, func(a, b trace.Request) int { return cmp.Compare(sentAt(a), sentAt(b)) })
	rows := compare(sent, seen)
	more, err := t.curves(sent, seen)
	if rows = append(rows, more...); err != nil || len(seen) < 1000 { // too few to fit
		return rows, err
	}
	verdict, err := t.redrawn(path)
	return append(rows, equal("fitted and synthesized: synth --check", "PASS", verdict)), err
}

func read(path string) (rows []trace.Request, err error) {
	in, err := format.Open(path, format.Options{})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	for r, err := range in.Requests() {
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func sentAt(r trace.Request) float64 {
	var x struct {
		Sent float64 `json:"sent_ms"`
	}
	json.Unmarshal(r.Extra, &x)
	return x.Sent
}

// compare compares requests in the order in which they were sent and arrived. Requests
// that were sent at nearly the same time may arrive in another order, so they are paired
// by their content.
func compare(sent, seen []trace.Request) []row {
	rows := []row{equal("requests", len(sent), len(seen))}
	n := min(len(sent), len(seen))
	ids, back := map[uint64]uint64{}, map[uint64]uint64{}
	var lengths, sharing, order int
	late := make([]float64, n)
	for i := range n {
		j := i
		for k := i; k < n && sentAt(sent[k])-sentAt(sent[i]) < 50; k++ { // who else may have arrived now
			if same(&sent[k], &seen[i], ids) {
				j = k
				break
			}
		}
		if j != i {
			moved := sent[j]
			copy(sent[i+1:j+1], sent[i:j])
			sent[i] = moved
			order++
		}
		a, b := &sent[i], &seen[i]
		if a.InputLength != b.InputLength || a.OutputLength != b.OutputLength {
			lengths++
		}
		ok := len(a.HashIDs) == len(b.HashIDs)
		for k := 0; ok && k < len(a.HashIDs); k++ {
			x, y := a.HashIDs[k], b.HashIDs[k]
			ok = (ids[x] == y || ids[x] == 0) && (back[y] == x || back[y] == 0)
			ids[x], back[y] = y, x
		}
		if !ok {
			sharing++
		}
		late[i] = b.Timestamp.Value - sentAt(*a)
	}
	slices.Sort(late) // the clocks begin at different times, so it is around the median
	middle := late[n/2]
	for i := range late {
		late[i] = math.Abs(late[i] - middle)
	}
	slices.Sort(late)
	return append(rows, equal("requests of other lengths", 0, lengths),
		equal("requests whose blocks are shared in another way", 0, sharing),
		row{What: "requests that overtook another on their way", Measured: fmt.Sprint(order)},
		row{What: "distance of arrivals from when the client sent, p50", Measured: fmt.Sprintf("%.3g ms", late[n/2])},
		atMost("p99", 1, late[n*99/100], "ms"))
}

// same reports whether two requests may be one.
func same(a, b *trace.Request, ids map[uint64]uint64) bool {
	if a.InputLength != b.InputLength || a.OutputLength != b.OutputLength || len(a.HashIDs) != len(b.HashIDs) {
		return false
	}
	for k, x := range a.HashIDs {
		if y := ids[x]; y != 0 && y != b.HashIDs[k] {
			return false
		}
	}
	return true
}

// curves compares the hit rates that analyze finds.
func (t *tools) curves(sent, seen []trace.Request) ([]row, error) {
	var found [2]string
	for i, all := range [][]trace.Request{sent, seen} {
		file := filepath.Join(t.work, fmt.Sprint("judged-", i, ".jsonl"))
		if err := write(file, all); err != nil {
			return nil, err
		}
		csv, err := t.run("analyze", file, "--cache", "lru", "--capacities", "100,1000,10000,50000", "--csv")
		if err != nil {
			return nil, err
		}
		found[i] = hits(csv)
	}
	return []row{equal("block hit rates of LRU, 100 to 50,000 blocks", found[0], found[1])}, nil
}

// redrawn fits a capture, draws as many requests, and returns the verdict of the check.
func (t *tools) redrawn(path string) (string, error) {
	model, drawn := filepath.Join(t.work, "model.json"), filepath.Join(t.work, "drawn.jsonl")
	if _, err := t.run("fit", path, "-o", model); err != nil {
		return "", err
	}
	out, err := t.run("synth", "--from", model, "--check", "--against", path, "-o", drawn)
	_, verdict, found := strings.Cut(out, "Verdict: ")
	if !found {
		return "", err
	}
	why, passed := strings.CutPrefix(verdict, "PASS")
	if passed {
		return "PASS", nil
	}
	return strings.Join(strings.Fields(why), " "), nil
}

// hits returns the hit rates of a table.
func hits(csv string) string {
	var all []string
	for _, line := range strings.Split(strings.TrimSpace(csv), "\n")[1:] {
		if rate, err := strconv.ParseFloat(strings.Split(line, ",")[3], 64); err == nil {
			all = append(all, fmt.Sprintf("%.4f", rate))
		}
	}
	return strings.Join(all, ", ")
}

// write writes rows with nothing but what analyze needs.
func write(path string, rows []trace.Request) error {
	out, err := format.Create(path)
	if err != nil {
		return err
	}
	defer out.Discard()
	for i, r := range rows {
		r = trace.Request{Timestamp: trace.Some(float64(i)), InputLength: r.InputLength, OutputLength: r.OutputLength, HashIDs: r.HashIDs}
		if err := out.Write(r); err != nil {
			return err
		}
	}
	return out.Close()
}
