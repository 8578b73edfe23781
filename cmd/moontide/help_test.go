package main

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"moontide/cmd/moontide/clidoc"
)

// allVerbs returns the verbs that a user types.
func allVerbs() []*cli.Command {
	return slices.DeleteFunc(newApp(streams{}, stop{}).Commands, func(c *cli.Command) bool { return c.Hidden })
}

// helpOf returns the help of a verb by group; the text above the first group is
// under "".
func helpOf(t *testing.T, verb string) (whole string, groups map[string]string) {
	t.Helper()
	whole = must(t, t.TempDir(), verb, "--help")
	groups = map[string]string{}
	heading := ""
	for line := range strings.Lines(whole) {
		if text := strings.TrimSpace(line); !strings.HasPrefix(line, " ") && text != "" && text == strings.TrimRight(line, "\n") && isHeading(text) {
			heading = text
			continue
		}
		groups[heading] += line
	}
	return whole, groups
}

func isHeading(text string) bool {
	name, _, _ := strings.Cut(text, ", --")
	return name == strings.ToUpper(name)
}

func TestHelpFits(t *testing.T) {
	t.Parallel()
	for _, c := range allVerbs() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			whole, groups := helpOf(t, c.Name)
			for line := range strings.Lines(whole) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > clidoc.HelpWidth {
					t.Errorf("a line of %d characters: %s", n, line)
				}
			}
			for _, heading := range []string{"USAGE", "EXAMPLES", inOutput} {
				if c.Name != "serve" && groups[heading] == "" && (heading != inOutput || len(c.Flags) > 0 && verbPages[c.Name].Common == nil) {
					t.Errorf("no %s", heading)
				}
			}
			if n := strings.Count(groups["EXAMPLES"], "moontide "+c.Name); n < 1 || n > 3 {
				t.Errorf("%d examples", n)
			}
			for _, wrong := range []string{"(default: )", "(default: false)", "default: default", "VALUE"} {
				if wrong == "VALUE" && strings.Contains(whole, " VALUE\n") || wrong != "VALUE" && strings.Contains(whole, wrong) {
					t.Errorf("it has %q", wrong)
				}
			}
		})
	}
}

// Every flag has a group and a text that starts with a noun or an imperative
// and does not repeat its default.
func TestHelpOfEachFlag(t *testing.T) {
	t.Parallel()
	for _, c := range allVerbs() {
		page, ok := verbPages[c.Name]
		if !ok {
			t.Errorf("%s has no page", c.Name)
		}
		known, texts := map[string]bool{}, map[string]string{}
		for _, f := range manualOf(&cli.App{Name: appName}).Verb(c).Flags() {
			texts[f.Name] = f.Help()
		}
		for _, f := range c.VisibleFlags() {
			name := f.Names()[0]
			known[name] = true
			if name == "help" {
				continue
			}
			if group := clidoc.CategoryOf(f); !slices.Contains(groups, group) {
				t.Errorf("%s --%s is in the group %q", c.Name, name, group)
			}
			usage := f.(cli.DocGenerationFlag).GetUsage()
			text := texts[name]
			first, _, _ := strings.Cut(strings.Trim(strings.ReplaceAll(usage, "`", ""), "'"), " ")
			switch {
			case usage == "":
				t.Errorf("%s --%s has no text", c.Name, name)
			case unicode.IsUpper(rune(first[0])) && first != strings.ToUpper(first) && first != "Prometheus" && first != "Zipf" && first != "Name:":
				t.Errorf("%s --%s begins with a capital: %s", c.Name, name, usage)
			case !unicode.IsLetter(rune(first[0])):
				t.Errorf("%s --%s begins with %q", c.Name, name, first)
			case strings.HasSuffix(usage, ".") || strings.HasSuffix(usage, ","):
				t.Errorf("%s --%s runs on or ends with a stop: %s", c.Name, name, usage)
			case strings.Contains(usage, "default:"), strings.Count(text, "(default") > 1:
				t.Errorf("%s --%s tells its default by hand: %s", c.Name, name, text)
			case strings.Count(usage, ". ") > 1:
				t.Errorf("%s --%s has more than two sentences: %s", c.Name, name, usage)
			}
		}
		for _, name := range page.Common {
			if !known[name] {
				t.Errorf("%s has no --%s, which its help puts first", c.Name, name)
			}
		}
		if len(page.Common) > 8 {
			t.Errorf("%s: %d flags are put first", c.Name, len(page.Common))
		}
	}
}

// The examples of the help parse.
func TestHelpExamples(t *testing.T) {
	t.Parallel()
	app := newApp(streams{}, stop{})
	for verb, page := range verbPages {
		for _, example := range page.Examples {
			args := append([]string{verb}, strings.Fields(strings.ReplaceAll(example, "'", ""))...)
			known := app.Command(verb).Flags
			for i, arg := range args {
				if arg == "|" { // to another program
					break
				}
				if arg == "--" { // before another command
					known = app.Command(args[i+1]).Flags
					continue
				}
				name, isFlag := strings.CutPrefix(arg, "--")
				if isFlag && !hasFlag(known, name) {
					t.Errorf("moontide %s %s: there is no --%s", verb, example, name)
				}
			}
		}
	}
}

func hasFlag(flags []cli.Flag, name string) bool {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return true
		}
	}
	return false
}

func TestHelpGroups(t *testing.T) {
	t.Parallel()
	for _, want := range []struct{ verb, group, flag, says string }{
		{"synth", "COMMON", "--from", ""},
		{"synth", "COMMON", "--spec", ""},
		{"synth", "COMMON", "--isl", ""},
		{"synth", "COMMON", "--num-requests", "as many as the trace has"},
		{"synth", ofCheck, "--check", ""},
		{"synth", ofSessions, "--rate-scale", "default: 1"},
		{"synth", ofTree, "--max-isl", "default: none"},
		{"synth", ofTree, "--keep-rate", ""},
		{"synth", ofDescriptions, "--turns", "(default: 1)"},
		{"synth", inRequests, "--block-size", "or 512"},
		{"replay", "COMMON", "--url", "embedded simulated endpoint"},
		{"replay", inRequests, "--temperature", "(default: the endpoint's)"},
		{"replay", inRunControl, "--timeout TIME", "(default: 1h"},
		{"replay", inEngine, "Flags of", "moontide serve --help"},
		{"bench", "COMMON", "--concurrency", ""},
		{"serve", inEngine, "--prefill-engines", ""},
		{"analyze", inCache, "--routing", "round-robin"},
		{"convert", "COMMON", "--output", "(default: -"},
	} {
		whole, groups := helpOf(t, want.verb)
		_, entry, found := strings.Cut(groups[want.group], " "+want.flag)
		if end := strings.Index(entry, "\n  -"); end >= 0 {
			entry = entry[:end]
		}
		if !found || !strings.Contains(strings.Join(strings.Fields(entry), " "), want.says) {
			t.Errorf("%s: under %s there is no %s with %q:\n%s", want.verb, want.group, want.flag, want.says, whole)
		}
	}
	for line := range strings.Lines(must(t, t.TempDir(), "--help")) {
		if utf8.RuneCountInString(line) > clidoc.HelpWidth+1 {
			t.Errorf("moontide --help is too wide: %s", line)
		}
	}
}
