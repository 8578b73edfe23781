package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"moontide/cmd/moontide/clidoc"
)

// update writes the generated pages and schemas instead of comparing them: see
// go generate.
var update = flag.Bool("update-docs", false, "write generated files")

// current checks that a generated file is what it should be, or writes it.
func current(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not current: run go generate ./cmd/moontide (%v)", path, err)
	}
}

// The reference has a page for each verb, with all of its flags, and no other.
func TestReference(t *testing.T) {
	manual := manualOf(newApp(streams{}, stop{}))
	for _, v := range manual.Verbs() {
		var page bytes.Buffer
		if err := v.WriteMarkdown(&page); err != nil {
			t.Fatal(err)
		}
		for _, c := range manual.App.Command(v.Name).VisibleFlags() {
			if name := c.Names()[0]; !strings.Contains(page.String(), "--"+name) {
				t.Errorf("the page of %s has no --%s", v.Name, name)
			}
		}
		current(t, filepath.Join("reference", v.Name+".md"), page.String())
	}
	if pages := files(t, "reference"); len(pages) != len(manual.Verbs()) {
		t.Errorf("%d verbs have %d pages: %q", len(manual.Verbs()), len(pages), pages)
	}
}

// The generated parts of README.md are current.
func TestReferenceReadme(t *testing.T) {
	manual := manualOf(newApp(streams{}, stop{}))
	var setup strings.Builder
	for _, line := range manual.Verb(manual.App.Command("completion")).Examples {
		fmt.Fprintf(&setup, "%s\n", line)
	}
	parts := map[string]string{
		"verbs":       manual.VerbTable("reference"),
		"files":       clidoc.Table("other files", "what they are", userFiles),
		"statuses":    clidoc.Table("status", "meaning", exitStatuses),
		"environment": clidoc.Table("variable", "effect", environment),
		"schemas":     schemaTable(),
		"completion":  "```text\n" + setup.String() + "```\n",
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	page := regexp.MustCompile(`(?s)<!-- generated: (\w+) -->\n.*?<!-- end -->`).ReplaceAllStringFunc(string(text), func(part string) string {
		name := regexp.MustCompile(`\w+`).FindString(strings.TrimPrefix(part, "<!-- generated: "))
		content, ok := parts[name]
		if !ok {
			t.Errorf("README.md has an unknown part %q", name)
		}
		delete(parts, name)
		return fmt.Sprintf("<!-- generated: %s -->\n%s<!-- end -->", name, content)
	})
	if len(parts) > 0 {
		t.Errorf("README.md lacks parts: %v", parts)
	}
	current(t, "README.md", page)
}

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
