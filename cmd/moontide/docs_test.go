package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// There is a man page for the command and for each verb, with every flag, and
// mandoc and groff find nothing wrong with them.
func TestManPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, dir, "man", "pages")
	pages := []string{filepath.Join(dir, "pages", "moontide.1")}
	for _, c := range allVerbs() {
		path := filepath.Join(dir, "pages", "moontide-"+c.Name+".1")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, path)
		plain := strings.ReplaceAll(string(text), `\-`, "-")
		for _, f := range manualOf(newApp(streams{}, stop{}, c.Name)).Verb(c).Groups {
			for _, flag := range f.Flags {
				if !strings.Contains(plain, "--"+flag.Name+`\fR`) && f.Elsewhere.Verb == "" {
					t.Errorf("the page of %s has no --%s", c.Name, flag.Name)
				}
			}
		}
	}
	if all := files(t, filepath.Join(dir, "pages")); len(all) != len(pages) {
		t.Errorf("pages: %q", all)
	}
	for _, linter := range [][]string{{"mandoc", "-Tlint"}, {"groff", "-man", "-Tutf8", "-ww", "-z"}} {
		if _, err := exec.LookPath(linter[0]); err != nil {
			continue
		}
		out, _ := exec.Command(linter[0], append(linter[1:], pages...)...).CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if !strings.Contains(line, "missing date") { // that of the build, which a test has not
				t.Errorf("%s: %s", linter[0], line)
			}
		}
	}
}

// Help is printed for a verb in three ways, and a wrong verb is misuse.
func TestHelpVerb(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if a, b := must(t, dir, "help", "fit"), must(t, dir, "fit", "--help"); a != b || !strings.Contains(a, "moontide fit TRACE") {
		t.Errorf("help fit: %s\nfit --help: %s", a, b)
	}
	if a, b := must(t, dir, "help"), must(t, dir, "--help"); a != b || !strings.Contains(a, "\n  replay ") {
		t.Errorf("help: %s\n--help: %s", a, b)
	}
	for _, args := range [][]string{{"help", "repaly"}, {"repaly"}, {"repaly", "--help"}} {
		if r := try(t, dir, "", args...); r.status != exitMisused || !strings.Contains(r.err, `unknown command "repaly"; did you mean replay?`) || r.out != "" {
			t.Errorf("%q: exit status %d: %s%s", args, r.status, r.err, r.out)
		}
	}
	for _, args := range [][]string{{"help", "fit", "synth"}, {"completion"}, {"completion", "tcsh"}, {"man"}} {
		if r := try(t, dir, "", args...); r.status != exitMisused {
			t.Errorf("%q: exit status %d: %s", args, r.status, r.err)
		}
	}
}
