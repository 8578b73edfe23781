package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// load writes a trace of requests that arrive at a steady rate and share nothing.
func (t *tools) load(name string, streams, tokens int, every time.Duration, duration time.Duration) (path string, err error) {
	var b strings.Builder
	gap := float64(every.Microseconds()) * float64(tokens) / float64(streams) / 1000
	for i := range int(float64(duration.Milliseconds()) / gap) {
		fmt.Fprintf(&b, `{"timestamp":%.3f,"input_length":512,"output_length":%d,"hash_ids":[%d]}`+"\n", float64(i)*gap, tokens, i)
	}
	path = filepath.Join(t.work, name+".jsonl")
	return path, os.WriteFile(path, []byte(b.String()), 0o644)
}

// latencies are a part of summary.json, in milliseconds.
type latencies struct {
	Completed int     `json:"completed"`
	TTFT50    float64 `json:"p50_ttft_ms"`
	TTFT99    float64 `json:"p99_ttft_ms"`
	ITL50     float64 `json:"p50_itl_ms"`
	ITL99     float64 `json:"p99_itl_ms"`
	Output    float64 `json:"total_output_tokens"`
	Duration  float64 `json:"duration"`
}

func (t *tools) replay(trace, url string, flags ...string) (l latencies, dir string, err error) {
	if dir, err = os.MkdirTemp(t.work, "run"); err != nil {
		return l, dir, err
	}
	dir = filepath.Join(dir, "run")
	if _, err := t.run(append([]string{"replay", trace, "--url", url, "--out", dir}, flags...)...); err != nil {
		return l, dir, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	return l, dir, err
}

// paced are the flags of a server that has a token for each sequence at equal times.
func paced(every time.Duration) []string {
	return []string{"--phased-tpot", every.String(), "--max-num-seqs", "10000", "--num-gpu-blocks", "8000000"}
}

// streams compares runs without and with the capture.
func streams(t *tools) ([]row, error) {
	trace, err := t.load("streams", 200, 250, 20*time.Millisecond, 20*time.Second)
	if err != nil {
		return nil, err
	}
	server, proxy, _, err := t.between(paced(20 * time.Millisecond)...)
	if err != nil {
		return nil, err
	}
	defer server.end()
	defer proxy.end()
	var runs [2][]latencies
	for range t.rounds {
		for i, p := range []*process{server, proxy} {
			l, _, err := t.replay(trace, p.url)
			if err != nil {
				return nil, err
			}
			runs[i] = append(runs[i], l)
		}
	}
	var rows []row
	for _, m := range []struct {
		name  string
		limit float64
		of    func(latencies) float64
	}{
		{"TTFT p50", 0.3, func(l latencies) float64 { return l.TTFT50 }},
		{"TTFT p99", 1, func(l latencies) float64 { return l.TTFT99 }},
		{"ITL p50", 0, func(l latencies) float64 { return l.ITL50 }},
		{"ITL p99", 0.3, func(l latencies) float64 { return l.ITL99 }},
	} {
		without, with := median(runs[0], m.of), median(runs[1], m.of)
		r := atMost("added "+m.name, m.limit, with-without, "ms")
		if m.limit == 0 {
			r.Limit, r.Missed = "", false
		}
		r.Measured += fmt.Sprintf(" (%.2f without, %.2f with)", without, with)
		rows = append(rows, r)
	}
	return rows, nil
}

func median(runs []latencies, of func(latencies) float64) float64 {
	var all []float64
	for _, l := range runs {
		all = append(all, of(l))
	}
	slices.Sort(all)
	return (all[len(all)/2] + all[(len(all)-1)/2]) / 2
}

// busyStreams measures the CPU time of an event.
func busyStreams(t *tools) (rows []row, err error) {
	for _, streams := range []int{200, 1000} {
		every := 50 * time.Millisecond
		trace, err := t.load("busy", streams, 200, every, 15*time.Second)
		if err != nil {
			return nil, err
		}
		server, proxy, _, err := t.between(paced(every)...)
		if err != nil {
			return nil, err
		}
		defer server.end()
		before := proxy.cpu()
		l, _, err := t.replay(trace, proxy.url)
		if err != nil {
			return nil, err
		}
		cpu := proxy.cpu() - before
		if _, err := proxy.end(); err != nil {
			return nil, err
		}
		rows = append(rows, row{What: fmt.Sprintf("CPU per event, %d streams of 20 tokens/s", streams), Limit: "reported",
			Measured: fmt.Sprintf("%.1f us (%.0f events/s, %.0f %% of a core)", cpu/l.Output*1e6, l.Output/l.Duration, 100*cpu/l.Duration)})
	}
	return rows, nil
}

// idle measures the memory of connections without a request.
func idle(t *tools) ([]row, error) {
	const connections = 10_000
	limit := syscall.Rlimit{Cur: connections + 1000, Max: connections + 1000}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil, fmt.Errorf("10,000 open files: %w", err)
	}
	server, proxy, _, err := t.between()
	if err != nil {
		return nil, err
	}
	defer server.end()
	defer proxy.end()
	for i := range connections {
		conn, err := net.Dial("tcp", strings.TrimPrefix(proxy.url, "http://"))
		if err != nil {
			return nil, fmt.Errorf("connection %d: %w", i, err)
		}
		defer conn.Close()
	}
	time.Sleep(2 * time.Second)
	return []row{atMost(fmt.Sprintf("resident memory, %d connections", connections), 300, proxy.proc("status", `VmRSS:\s+(\d+)`)/1024, "MB")}, nil
}

// officialClients runs the steps of the official clients through the capture.
func officialClients(t *tools) ([]row, error) {
	out, err := exec.Command(".ci/node-clients/run", "--capture").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	if strings.Contains(string(out), "skipped") {
		return nil, nil
	}
	var rows []row
	for _, m := range regexp.MustCompile(`(?m)^moontide: (\d+) requests?, (\d+) rows?`).FindAllStringSubmatch(string(out), -1) {
		rows = append(rows, equal("requests and rows", m[1], m[2]))
	}
	return append(rows, row{What: "steps that are as they should be", Measured: fmt.Sprint(strings.Count(string(out), "as it should be"))}), nil
}
