package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"moontide/replay/cluster"
)

// steady is how long the parts of a simulated run send: nothing, they only report.
const steady = 10 * time.Second

// leading is what part 1 measures of its own process.
type leading struct {
	Barrier           time.Duration // from its arrival until it knows the start
	BarrierCPU        time.Duration // of it, CPU time
	SteadyCPU         time.Duration // CPU time while the parts send
	Steady            time.Duration // how long they did
	BarrierB, SteadyB int64         // bytes received and sent in each
}

// meet has n parts meet over loopback: part 1 in a process of its own, all others in
// this one. It prints a line of a table.
func meet(n int) error {
	dir, err := os.MkdirTemp("", "moontide-barrier-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	lead := exec.CommandContext(ctx, os.Args[0], "-lead", fmt.Sprint(n), "-folder", filepath.Join(dir, "run"))
	lead.Stderr = os.Stderr
	out, err := lead.StdoutPipe()
	if err != nil {
		return err
	}
	if err := lead.Start(); err != nil {
		return err
	}
	bounds, failed := make([]float64, n), make([]error, n)
	var parts sync.WaitGroup
	for number := 2; number <= n; number++ {
		parts.Go(func() {
			bounds[number-1], failed[number-1] = follow(ctx, number, n, filepath.Join(dir, "run"))
		})
	}
	parts.Wait()
	var l leading
	err = json.NewDecoder(bufio.NewReader(out)).Decode(&l)
	if err = errors.Join(append(failed, err, lead.Wait())...); err != nil {
		return err
	}
	others := bounds[1:]
	slices.Sort(others)
	perPart := float64(n-1) * l.Steady.Seconds()
	fmt.Printf("| %d | %.2f | %.2f | %.1f | %.2f %% | %.0f | %.3f | %.3f |\n", n, l.Barrier.Seconds(), l.BarrierCPU.Seconds(), float64(l.BarrierB)/1e3/float64(n-1),
		100*l.SteadyCPU.Seconds()/l.Steady.Seconds(), float64(l.SteadyB)/perPart, others[len(others)/2], others[len(others)-1])
	return nil
}

const barrierHeading = `| parts | barrier, s | CPU of part 1 in it, s | kB per part | CPU of part 1 afterwards | B/s per part | clock bound, ms: median | largest |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
`

func config(number, of int, dir string) cluster.Config {
	return cluster.Config{Number: number, Of: of, Dir: dir, OneMachine: true, Version: "scale", Timeout: 2 * time.Minute}
}

var facts = []cluster.Fact{{Name: "the trace (SHA-256)", Value: strings.Repeat("0", 64)}, {Name: "the flags", Value: strings.Repeat("x", 300)}}

// follow takes part in the run and returns the bound of the part's clock.
func follow(ctx context.Context, number, of int, dir string) (bound float64, err error) {
	m, err := cluster.Join(ctx, config(number, of, dir))
	if err != nil {
		return 0, err
	}
	defer func() { m.Close(err) }()
	if _, err := m.Agree(ctx, facts, cluster.Progress{}); err != nil {
		return 0, err
	}
	part, start, err := m.Begin(ctx)
	if err != nil {
		return 0, err
	}
	time.Sleep(time.Until(start.Add(steady)))
	return part.Clock.Before.BoundMS, m.End(ctx, part, "")
}

// leadParts is follow for part 1. It prints what it measured.
func leadParts(of int, dir string) error {
	ctx := context.Background()
	var l leading
	begun, cpu, bytes := time.Now(), cpuTime(), transferred()
	m, err := cluster.Join(ctx, config(1, of, dir))
	if err != nil {
		return err
	}
	if _, err := m.Agree(ctx, facts, cluster.Progress{}); err != nil {
		return err
	}
	part, start, err := m.Begin(ctx)
	if err != nil {
		return err
	}
	l.Barrier, l.BarrierCPU, l.BarrierB = time.Since(begun), cpuTime()-cpu, transferred()-bytes
	known := m.Parts()
	if err := errors.Join(os.MkdirAll(dir, 0o755), known.Write(dir)); err != nil {
		return err
	}
	time.Sleep(time.Until(start))
	cpu, bytes = cpuTime(), transferred()
	time.Sleep(steady - time.Second)
	l.Steady, l.SteadyCPU, l.SteadyB = steady-time.Second, cpuTime()-cpu, transferred()-bytes
	err = m.End(ctx, part, "")
	m.Close(err)
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(l))
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// transferred returns the bytes that this process has read and written, of which nearly
// all are those of sockets.
func transferred() (sum int64) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var n int64
		if _, err := fmt.Sscanf(line, "rchar: %d", &n); err == nil {
			sum += n
		}
		if _, err := fmt.Sscanf(line, "wchar: %d", &n); err == nil {
			sum += n
		}
	}
	return sum
}

// meetAll has each of some numbers of parts meet.
func meetAll(numbers []int) error {
	fmt.Print(barrierHeading)
	for _, n := range numbers {
		if err := meet(n); err != nil {
			return fmt.Errorf("%d parts: %w", n, err)
		}
	}
	return nil
}
