package main

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// showHelp is the help printer of the library.
func showHelp(w io.Writer, _ string, data any) {
	switch data := data.(type) {
	case *cli.App:
		io.WriteString(w, appHelp(data))
	case *cli.Command:
		io.WriteString(w, verbHelp(data))
	}
}

func init() { cli.HelpPrinter = showHelp }

// verbPage is the help of a verb in addition to its flags.
type verbPage struct {
	section  string   // in the list of verbs
	usage    []string // printed after "moontide VERB"
	examples []string // the same
	common   []string // the flags used most
}

var verbPages = map[string]verbPage{
	"replay": {
		section: "Replay and measure",
		usage:   []string{"TRACE [FLAGS]"},
		examples: []string{
			"traces/conversation.jsonl",
			"trace.jsonl --url http://127.0.0.1:8000 --speedup 2 --max-concurrency 64",
			"trace.jsonl --url http://127.0.0.1:8000 --endpoint chat --rate 20 --limit 500",
		},
		common: []string{"url", "model", "endpoint", "limit", "speedup", "rate", maxConcurrencyFlag.Name, outFlag.Name},
	},
	"bench": {
		section: "Replay and measure",
		usage:   []string{"--isl DIST --osl DIST (--concurrency N,N,... | --rate R,R,...) [FLAGS]"},
		examples: []string{
			"--isl 3000 --osl 150 --concurrency 1,2,4,8,16,32 --out runs/sweep",
			"--isl 500 --osl 50 --rate 1,2,4,8 --url old=http://a:8000 --url new=http://b:8000",
			"--spec chat --rate 2,4,8 --num-prompts 500 --markdown --png sweep.png",
		},
		common: []string{"isl", "osl", "concurrency", "rate", "num-prompts", "url", "model", "out"},
	},
	"report": {
		section: "Replay and measure",
		usage:   []string{"[LABEL=]RUN... [FLAGS]"},
		examples: []string{
			"runs/a --percentiles 50,90,99 --goodput ttft:2000,tpot:50",
			"before=runs/a after=runs/b --markdown --png latencies.png",
			"runs/a --slo 'p99_ttft<2s,failed<1%'",
		},
		common: []string{"metrics", "percentiles", "goodput", "json", "csv", "markdown", "html", "png"},
	},
	"compare": {
		section: "Replay and measure",
		usage:   []string{"[NAME=]A[,A...] [NAME=]B[,B...] [FLAGS]"},
		examples: []string{
			"runs/before runs/after",
			"old=runs/a1,runs/a2,runs/a3 new=runs/b1,runs/b2,runs/b3",
			"runs/before runs/after --fail-if 'p99_ttft_ms>+5%'",
		},
		common: []string{"fail-if", "metric", "goodput", "force", "json", "markdown"},
	},
	"calibrate": {
		section:  "Replay and measure",
		usage:    []string{"[FLAGS]"},
		examples: []string{"", "--json --out calibration.json"},
	},
	"analyze": {
		section: "Understand traces",
		usage:   []string{"TRACE... [FLAGS]"},
		examples: []string{
			"trace.jsonl --html trace.html",
			"trace.jsonl --cache lru,belady --capacities 64GiB,256GiB --kv-model llama-3.1-70b",
			"production.jsonl synthetic.jsonl --json",
		},
		common: []string{"json", "markdown", "html", "png", "cache", "capacities", "kv-model", "workers"},
	},
	"check": {
		section:  "Understand traces",
		usage:    []string{"TRACE [FLAGS]"},
		examples: []string{"trace.jsonl", "azure.csv --json"},
	},
	"convert": {
		section: "Make and change traces",
		usage:   []string{"TRACE... [-o FILE] [FLAGS]"},
		examples: []string{
			"azure.csv -o trace.jsonl.zst",
			"trace.jsonl --start 10m --end 20m --sample 0.1 -o part.jsonl",
			"a.jsonl b.jsonl --rate 20 --arrival poisson --seed 1 -o merged.jsonl",
		},
		common: []string{"output", "limit", "start", "end", "rate", "speedup", "sample", "shard"},
	},
	"synth": {
		section: "Make and change traces",
		usage: []string{
			"--from TRACE [-o FILE] [FLAGS]",
			"--spec FILE [-o FILE] [FLAGS]",
			"--isl DIST --osl DIST [-o FILE] [FLAGS]",
		},
		examples: []string{
			"--from production.jsonl -n 10000 --seed 1 -o more.jsonl",
			"--isl lognormal:3000:1 --osl 150 --rate 4 --duration 10m -o trace.jsonl",
			"--from trace.jsonl --method tree -n 10000 --prefix-len-multiplier 2",
		},
		common: []string{"from", "method", "spec", "isl", "osl", "num-requests", "seed", "output"},
	},
	"fit": {
		section:  "Make and change traces",
		usage:    []string{"TRACE [-o MODEL] [FLAGS]"},
		examples: []string{"production.jsonl -o model.json"},
	},
	"simulate": {
		section: "Simulate",
		usage:   []string{"TRACE [FLAGS]"},
		examples: []string{
			"traces/agent.jsonl --engines 4 --routing prefix",
			"traces/agent.jsonl --prefill-engines 3 --decode-engines 1 --out runs/pd",
		},
		common: []string{"limit", "speedup", "rate", maxConcurrencyFlag.Name, "engines", "routing", "seed", "out"},
	},
	"serve": {
		section: "Simulate",
		usage:   []string{"[FLAGS]"},
		examples: []string{
			"--listen 127.0.0.1:8000 --engines 2 --routing prefix",
			"--fault reset:0.01 --time-scale 10",
		},
		common: []string{"listen", "model", "engines", "routing", "time-scale", "fault"},
	},
}

// verbSections lists the sections of the list of verbs.
var verbSections = []string{"Replay and measure", "Understand traces", "Make and change traces", "Simulate"}

// helpWidth is the width of all help texts in columns; textColumn is the column
// where the text of a flag starts.
const helpWidth, textColumn = 80, 28

func appHelp(app *cli.App) string {
	var b strings.Builder
	fmt.Fprintf(&b, "moontide - %s\n\nUSAGE\n  moontide VERB [ARGUMENTS] [FLAGS]\n", app.Usage)
	for _, section := range verbSections {
		fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(section))
		for _, c := range app.Commands {
			if verbPages[c.Name].section == section {
				entry(&b, c.Name, 13, c.Usage)
			}
		}
	}
	b.WriteString("\nEXAMPLES\n" +
		"  moontide replay traces/conversation.jsonl\n" +
		"  moontide analyze traces/conversation.jsonl\n" +
		"  moontide bench --isl 500 --osl 50 --concurrency 1,2,4,8,16\n\n" +
		"Run 'moontide VERB --help' for the flags of a verb, 'moontide --version' for the\nversion.\n")
	return b.String()
}

func verbHelp(c *cli.Command) string {
	page := verbPages[c.Name]
	var b strings.Builder
	for _, line := range wrap("moontide "+c.Name+" - "+c.Usage, helpWidth) {
		b.WriteString(line + "\n")
	}
	commands := func(title string, lines []string) {
		fmt.Fprintf(&b, "\n%s\n", title)
		for _, args := range lines {
			shellCommand(&b, "  moontide "+c.Name+" "+args)
		}
	}
	commands("USAGE", page.usage)
	commands("EXAMPLES", page.examples)
	if c.Description != "" {
		b.WriteString("\n")
	}
	for i, paragraph := range strings.Split(c.Description, "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		for _, line := range wrap(paragraph, helpWidth) {
			b.WriteString(line + "\n")
		}
	}
	common, rest := splitCommon(c.VisibleFlags(), page.common)
	flagGroup(&b, c, "COMMON", common)
	for _, name := range groups {
		var members []cli.Flag
		for _, f := range rest {
			if categoryOf(f) == name {
				members = append(members, f)
			}
		}
		if name == inEngine && c.Name != "serve" && len(members) > 0 {
			b.WriteString("\nENGINE\n  Flags of the simulated engines: see 'moontide serve --help'.\n")
			continue
		}
		flagGroup(&b, c, name, members)
	}
	return b.String()
}

// splitCommon separates the most used flags from the others.
func splitCommon(flags []cli.Flag, names []string) (common, rest []cli.Flag) {
	for _, name := range names {
		for _, f := range flags {
			if f.Names()[0] == name {
				common = append(common, f)
			}
		}
	}
	for _, f := range flags {
		if !slices.Contains(names, f.Names()[0]) && f.Names()[0] != "help" {
			rest = append(rest, f)
		}
	}
	return common, rest
}

func categoryOf(f cli.Flag) string {
	if c, ok := f.(cli.CategorizableFlag); ok {
		return c.GetCategory()
	}
	return ""
}

func flagGroup(b *strings.Builder, verb *cli.Command, title string, flags []cli.Flag) {
	if len(flags) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, f := range flags {
		entry(b, flagLabel(f), textColumn, flagText(verb, f))
	}
}

// entry writes a name and a text in two columns.
func entry(b *strings.Builder, name string, column int, text string) {
	line := "  " + name
	for i, part := range wrap(text, helpWidth-column) {
		if i == 0 && len(line) > column-2 {
			b.WriteString(line + "\n")
			line = ""
		} else if i > 0 {
			line = ""
		}
		fmt.Fprintf(b, "%-*s%s\n", column, line, part)
	}
}

// flagLabel returns the flag with its one-letter name and placeholder.
func flagLabel(f cli.Flag) string {
	label := "--" + f.Names()[0]
	for _, name := range f.Names()[1:] {
		if len(name) == 1 {
			label = "-" + name + ", " + label
		}
	}
	if doc := f.(cli.DocGenerationFlag); doc.TakesValue() {
		label += " " + placeholder(f)
	}
	return label
}

// placeholder returns the name of a flag's value: the one in backquotes in its
// usage text, which does not show it in the help if it precedes a colon.
func placeholder(f cli.Flag) string {
	_, rest, found := strings.Cut(f.(cli.DocGenerationFlag).GetUsage(), "`")
	if name, _, closed := strings.Cut(rest, "`"); found && closed {
		return name
	}
	switch f.(type) {
	case *cli.IntFlag, *cli.Uint64Flag:
		return "N"
	case *cli.DurationFlag:
		return "TIME"
	}
	return "VALUE"
}

// flagText returns the text of a flag with its default and its other names.
func flagText(verb *cli.Command, f cli.Flag) string {
	var notes []string
	if text := defaultOf(f); text != "" {
		notes = append(notes, "default: "+text)
	}
	if others := otherNamesOf(verb, f); len(others) > 0 {
		notes = append(notes, "also --"+strings.Join(others, ", --"))
	}
	text := f.(cli.DocGenerationFlag).GetUsage()
	if _, rest, found := strings.Cut(text, "`: "); found && text[0] == '`' {
		text = rest
	}
	text = strings.ReplaceAll(text, "`", "")
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, "; ") + ")"
	}
	return text
}

// defaultOf returns the default of a flag, or "" if there is none.
func defaultOf(f cli.Flag) string {
	if text := reflect.ValueOf(f).Elem().FieldByName("DefaultText").String(); text != "" {
		return text
	}
	switch text := f.(cli.DocGenerationFlag).GetValue(); text {
	case "0", "0s", "false", "[]":
		return ""
	default:
		return plainDuration(text)
	}
}

// plainDuration removes "0m0s" and "0s" from the text of a duration.
func plainDuration(text string) string {
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// shellCommand writes a command line, broken into several lines if it is long.
func shellCommand(b *strings.Builder, line string) {
	line = strings.TrimRight(line, " ")
	for utf8.RuneCountInString(line) > helpWidth {
		cut := strings.LastIndex(line[:helpWidth-1], " ")
		if flag := strings.LastIndex(line[:helpWidth-1], " --"); flag > helpWidth/2 { // keep the flag with its value
			cut = flag
		}
		b.WriteString(line[:cut] + " \\\n")
		line = "      " + line[cut+1:]
	}
	b.WriteString(line + "\n")
}

// wrap wraps a text into lines.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line == "" {
		return lines
	}
	return append(lines, line)
}
