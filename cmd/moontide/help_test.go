package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"moontide/replay/settings"
)

// allVerbs returns the verbs that a user types.
func allVerbs() []*cli.Command { return newApp(streams{}, stop{}).Commands }

// The help of each verb has its command lines, and text of at most 80 columns.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	for _, c := range allVerbs() {
		whole := must(t, t.TempDir(), c.Name, "--help")
		if must(t, t.TempDir(), "help", c.Name) != whole {
			t.Errorf("help %s differs from %s --help", c.Name, c.Name)
		}
		for line := range strings.Lines(whole) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > helpWidth && !strings.HasPrefix(line, "  moontide ") {
				t.Errorf("%s: a line of %d characters: %s", c.Name, n, line)
			}
		}
		for _, heading := range []string{"USAGE\n  moontide " + c.Name, "\nEXAMPLES\n  moontide " + c.Name} {
			if !strings.Contains(whole, heading) {
				t.Errorf("%s: no %q", c.Name, heading)
			}
		}
		for _, wrong := range []string{"(default: )", "(default: false)", "(default: 0)", "default: default", " VALUE\n"} {
			if strings.Contains(whole, wrong) {
				t.Errorf("%s has %q", c.Name, wrong)
			}
		}
	}
}

// groups lists the flag categories.
var groups = []string{
	inTarget, inRequests, inLoad, inSessions, inRunControl, string(settings.Machines), ofTraces, ofSessions, ofTree, ofDescriptions,
	inTraceInput, inCache, inFit, inValidity, inGates, ofCheck, inOutput, inEngine,
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
		for _, f := range c.VisibleFlags() {
			texts[f.Names()[0]] = flagHelp(f)
		}
		for _, f := range c.VisibleFlags() {
			name := f.Names()[0]
			known[name] = true
			if name == "help" {
				continue
			}
			if group := categoryOf(f); !slices.Contains(groups, group) {
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

// Few flags are enough: everything else is a setting of a file.
func TestFlagCounts(t *testing.T) {
	t.Parallel()
	for verb, most := range map[string]int{"replay": 60, "bench": 65} {
		if n := len(newApp(streams{}, stop{}).Command(verb).Flags); n > most {
			t.Errorf("%s has %d flags, more than %d", verb, n, most)
		}
		_, text, _ := strings.Cut(must(t, t.TempDir(), verb, "--help"), "\nMOST USED\n")
		text, _, _ = strings.Cut(text, "\n\n")
		used := verbPages[verb].Common
		for _, name := range append(words("slo html goodput"), used...) {
			if len(used) != 8 || !strings.Contains("\n"+text, "\n  --"+name+" ") || !strings.Contains(text, "\n        ") {
				t.Errorf("%s has %d flags that are used most, without --%s:\n%s", verb, len(used), name, text)
			}
		}
	}
	names := map[string]bool{}
	for _, row := range settings.Table {
		for _, name := range row.Others {
			names[name] = true
		}
	}
	for _, other := range otherNames {
		for _, name := range other.names {
			names[name] = settings.Find(name) == nil || names[name]
		}
	}
	maps.DeleteFunc(names, func(_ string, another bool) bool { return !another })
	if len(names) > 30 {
		t.Errorf("%d names of other tools", len(names))
	}
}

// The examples of the help parse.
func TestHelpExamples(t *testing.T) {
	t.Parallel()
	app := newApp(streams{}, stop{})
	for verb, page := range verbPages {
		for _, example := range page.Examples {
			args := append([]string{verb}, strings.Fields(strings.ReplaceAll(example, "'", ""))...)
			for _, arg := range args {
				if name, isFlag := strings.CutPrefix(arg, "--"); isFlag && !hasFlag(app.Command(verb).Flags, name) {
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
