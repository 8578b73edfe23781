// Command capture measures moontide capture between moontide replay and moontide serve,
// compares captures of replays with what was sent, and writes README.md. The script run
// calls it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"regexp"
	"runtime"
	"strings"
	"time"

	"moontide/.ci/results"
	"moontide/replay/bench"
)

// here is the folder of this program, seen from the top of the repository.
const here results.Folder = ".ci/capture"

// tools are what the checks use.
type tools struct {
	moontide, work, trace string
	rounds                int
}

// row is a line of a table: what was measured, and what is asked for.
type row struct {
	What     string `json:"what"`
	Limit    string `json:"limit,omitempty"`
	Measured string `json:"measured"`
	Missed   bool   `json:"missed,omitempty"`
}

// table is the result of a check.
type table struct {
	Date     string `json:"date"`
	Machine  string `json:"machine"`
	Moontide string `json:"moontide"`
	Rows     []row  `json:"rows"`
}

// check fills a table.
type check struct {
	name, text string
	run        func(*tools) ([]row, error)
}

var checks = []check{
	{"200 streams", "Steady 200 streams of 50 tokens/s, medians of alternated runs without and with the capture between client and server; all three processes share the machine.", streams},
	{"1,000 streams", "User and system time of the capture divided by the number of tokens, each of which is an event. Client and server share the two cores.", busyStreams},
	{"idle connections", "10,000 connections on which nothing was sent yet.", idle},
	{"hashing", "One core, the best of three, of texts that were not seen before. The named vocabularies are small; `real` is MOONTIDE_TOKENIZER, here that of Llama 3 with 128,000 tokens, on the texts of MOONTIDE_TEXT: English prose, code, Chinese with Japanese and Korean, and six other languages. A block of 16 token ids is 64 bytes, for which HMAC-SHA256 hashes 192.", hashing},
	{"round trip", "A replay of traces/conversation.jsonl through the capture, at twice its speed; a token every 20 ms.", func(t *tools) ([]row, error) {
		return roundTrip(t, 20*time.Millisecond, "traces/conversation.jsonl", "--speedup", "2")
	}},
	{"round trip of a published trace", "A replay of the Mooncake project's conversation trace (12,031 requests in an hour) through the capture, at 30 times its speed, its arrivals spread over the seconds that they share; a token every ms. Client, capture and server share two cores.", func(t *tools) ([]row, error) {
		return published(t, "--speedup", "30")
	}},
	{"slower round trip of a published trace", "The first 2,500 requests of the same trace at 10 times its speed.", func(t *tools) ([]row, error) {
		return published(t, "--speedup", "10", "--limit", "2500")
	}},
	{"official clients", "The steps of [.ci/node-clients](../node-clients) pass through the capture: OpenAI's and Anthropic's clients get the same results as without it.", officialClients},
}

// published is the round trip of the published trace, if there is one.
func published(t *tools, flags ...string) ([]row, error) {
	if t.trace == "" {
		return nil, nil
	}
	return roundTrip(t, time.Millisecond, t.trace, append(flags, "--spread-grid")...)
}

func main() {
	log.SetFlags(log.Ltime)
	log.SetPrefix("capture: ")
	var t tools
	flag.StringVar(&t.moontide, "moontide", "", "moontide program")
	flag.StringVar(&t.work, "work", "", "folder for runs")
	flag.StringVar(&t.trace, "trace", "", "published conversation trace to replay too")
	flag.IntVar(&t.rounds, "rounds", 3, "pairs of runs without and with the capture")
	only := flag.String("only", "", "run only the checks that match this `REGEXP`, and keep the other tables")
	render := flag.Bool("render", false, "write README.md from results.json and measure nothing")
	flag.Parse()
	if err := run(&t, *only, *render); err != nil {
		log.Fatal(err)
	}
}

func run(t *tools, only string, render bool) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	tables := map[string]table{}
	if err := here.Read(&tables); err != nil {
		return err
	}
	machine := fmt.Sprintf("%d cores, %s", runtime.NumCPU(), bench.ThisMachine().CPU)
	version := results.FirstLine("git", "describe", "--always", "--dirty")
	missed := 0
	for _, c := range checks {
		if render || !wanted.MatchString(c.name) {
			continue
		}
		log.Print(c.name)
		rows, err := c.run(t)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		for _, r := range rows {
			log.Printf("%s: %s (%s)", r.What, r.Measured, r.Limit)
			if r.Missed {
				missed++
			}
		}
		if rows != nil {
			tables[c.name] = table{time.Now().Format(time.DateOnly), machine, version, rows}
		}
	}
	if err := errors.Join(here.Write(tables), here.WritePage(page(tables))); err != nil {
		return err
	}
	if missed > 0 {
		return fmt.Errorf("%d limits are not met", missed)
	}
	return nil
}

// page is README.md.
func page(tables map[string]table) string {
	var p results.Page
	p.Line("# Overhead and fidelity of capture\n\n`.ci/capture/run` measures `moontide capture` and writes this page; all numbers come from\n[results.json](results.json). Limits that are not met are marked. Captures of a real vLLM are a check of\n[.ci/engines](../engines/README.md).")
	for _, c := range checks {
		t, ok := tables[c.name]
		if !ok {
			continue
		}
		p.Line("\n## %s%s\n\n%s\n\n%s, %s, %s.", strings.ToUpper(c.name[:1]), c.name[1:], c.text, t.Date, t.Machine, t.Moontide)
		p.Table("", "limit", "measured")
		for _, r := range t.Rows {
			if r.Missed {
				r.Measured = "**" + r.Measured + "** (not met)"
			}
			p.Row(r.What, r.Limit, r.Measured)
		}
	}
	return p.String()
}

// atMost is a row with a limit.
func atMost(what string, limit, measured float64, unit string) row {
	return row{what, fmt.Sprintf("%.3g %s", limit, unit), fmt.Sprintf("%.3g %s", measured, unit), measured > limit}
}

// equal is a row of two things that have to be equal.
func equal(what string, want, got any) row {
	a, b := fmt.Sprint(want), fmt.Sprint(got)
	return row{what, a, b, a != b}
}
