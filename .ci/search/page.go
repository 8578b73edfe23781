package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"moontide/analyze/report/doc"
	"moontide/replay/bench"
)

// tally counts the answers of some searches.
type tally struct {
	all, within, inside, most, runs int
	errors, worst                   float64
}

func tallyOf(rows []result) (t tally) {
	for i := range rows {
		r := &rows[i]
		t.all++
		if r.within() {
			t.within++
		}
		if r.covers() {
			t.inside++
		}
		if r.NoneFound == "" {
			t.worst = max(t.worst, math.Abs(r.off()))
		}
		t.most, t.runs, t.errors = max(t.most, r.Runs), t.runs+r.Runs, t.errors+r.Error/r.Truth
	}
	return t
}

func (t tally) row(name string) string {
	n := float64(max(t.all, 1))
	return fmt.Sprintf("| %s | %d | %d | %d | %.1f %% | %.2f %% | %.1f | %d |\n", name, t.all, t.within, t.inside, 100*t.worst, 100*t.errors/n, float64(t.runs)/n, t.most)
}

func page(all measurements) string {
	var b strings.Builder
	of := func(keep func(r result) bool) []result {
		return slices.DeleteFunc(slices.Clone(all.Rows), func(r result) bool { return !keep(r) })
	}
	queues := of(func(r result) bool { return r.Theory })
	drawn := of(func(r result) bool { return !r.Theory && !r.Endless })
	rates := of(func(r result) bool { return !r.Theory && r.Axis == bench.Rate })
	closed := of(func(r result) bool { return !r.Theory && !r.Endless && r.Axis == bench.Concurrency })
	endless := of(func(r result) bool { return r.Endless })
	fmt.Fprintf(&b, `# Accuracy of load searches

`+"`moontide bench --find`"+` searches for the highest load that meets the SLOs. These searches run in virtual time, where the true
answer is known: for queues from theory, and for random deployments from a reference. The reference is the mean, with a
standard error, over %d draws of %s requests (%s for concurrency): for each draw, the load at which it just meets the SLOs,
found to 0.3 %% with the same draw at all loads and without the first and the last tenth of the requests. Closed loops need
long runs: with round-robin routing, a slow engine accumulates more and more of the requests in flight, over tens of
thousands of requests. The program in this folder draws the deployments, searches and writes this page; all numbers come
from [results.json](results.json).

`+"```bash\ngo run ./.ci/search            # continues an interrupted run\ngo run ./.ci/search -seed 7    # other deployments\n```"+`

An interval counts as covering the truth if it is within two standard errors of it.

| searches | number | within 3 %% of the truth | interval covers it | largest error | standard error of the truth | runs on average | most runs |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
`, draws, doc.Int(longRun), doc.Int(longClosedRun))
	b.WriteString(tallyOf(queues).row("queues, against theory"))
	b.WriteString(tallyOf(rates).row("request rates of random deployments"))
	b.WriteString(tallyOf(closed).row("concurrencies of random deployments"))
	b.WriteString(tallyOf(drawn).row("**all random deployments**"))
	b.WriteString("\n## Queues\n\n")
	table(&b, queues)
	b.WriteString("\n## Random deployments\n\nCosts, limits, lengths, routing and SLOs are random; every fourth search is over concurrency.\n")
	fmt.Fprintf(&b, "Another %s met their SLOs at any concurrency, and the searches reported it.\n\n", doc.Count(len(endless), "deployment"))
	table(&b, drawn)
	return b.String()
}

func table(b *strings.Builder, rows []result) {
	b.WriteString("| system | objectives | limited by | found | 95 % interval | truth | its error | off | runs |\n| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range rows {
		unit := " req/s"
		if r.Axis == bench.Concurrency {
			unit = " in flight"
		}
		code := func(text string) string { return "`" + text + "`" }
		found, limited, off := fmt.Sprintf("%.3g%s", r.Found, unit), r.Limited, fmt.Sprintf("%+.1f %%", 100*r.off())
		if strings.Contains(limited, "<") {
			limited = code(limited)
		}
		if r.NoneFound != "" {
			found, limited, off = "none", r.NoneFound, ""
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %.3g to %.3g | %.4g | %.1f %% | %s | %d |\n", r.Name, code(r.SLO), limited,
			found, r.From, r.To, r.Truth, 100*r.Error/r.Truth, off, r.Runs)
	}
}
