//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// pageTools are the commands that pages may use beside moontide and go.
var pageTools = strings.Fields("awk basename cat cmp cp cut date diff dirname echo env false find grep gunzip gzip head ls mkdir mv " +
	"paste printf pwd rm sed seq sh bash sleep sort tail tee test touch tr true uniq wc xargs zcat")

// blockTimeout ends a block whose commands do not end.
const blockTimeout = 5 * time.Minute

// The commands of all pages work, and what they print and draw is what the pages
// show. Those of one page run in page order in a folder that, like the root of
// the project, has the sample traces in traces.
func TestPages(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("bash")
	if err != nil {
		if shell, err = exec.LookPath("sh"); err != nil {
			t.Skip("there is no shell to execute the commands of pages")
		}
	}
	bin := pageBin(t)
	// Pages take longest, so they begin with this test. As parallel subtests they
	// would begin last.
	var all sync.WaitGroup
	for _, p := range pages(t) {
		all.Go(func() {
			t.Run(p.name, func(t *testing.T) {
				s := newScratch(t, p)
				s.shell, s.bin = shell, bin
				for _, b := range p.blocks {
					s.try(t, b)
				}
				s.checkSamples(t)
				s.checkPictures(t)
			})
		})
	}
	all.Wait()
}

// pageBin makes a folder with the commands that pages may use.
func pageBin(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"moontide", "go"} {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			t.Skipf("cannot link the commands of pages: %v", err)
		}
	}
	for _, name := range pageTools {
		if tool, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(tool, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return bin
}

// scratch is where the commands of a page run.
type scratch struct {
	page            *page
	shell, bin, dir string
	own             string          // a folder for files of the test and moontide's cache
	url             string          // of the endpoint, instead of pageURL
	shown           map[string]bool // commands that console blocks execute
	done            []executed
}

func newScratch(t *testing.T, p *page) *scratch {
	t.Helper()
	s := &scratch{page: p, dir: t.TempDir(), own: t.TempDir(), url: pageURL, shown: map[string]bool{}}
	for _, b := range p.blocks {
		if b.kind == "console" {
			for _, tr := range b.transcripts(t) {
				s.shown[strings.TrimSpace(tr.command)] = true
			}
		}
	}
	if strings.Contains(p.text, pageURL) {
		s.url = serveFast(t, "--step-base", "1ms")
	}
	s.copySamples(t)
	return s
}

// pageURL is the address of the user's server in commands of pages. A simulated
// endpoint takes its place.
const pageURL = "http://127.0.0.1:8000"

var (
	untested  = []string{"shell", "zsh", "shell-session", "shellsession", "terminal"} // not how blocks of commands are marked here
	published = regexp.MustCompile(`\b[a-z]+_trace\.jsonl\b`)
)

func (s *scratch) try(t *testing.T, b codeBlock) {
	if slices.Contains(untested, b.kind) {
		t.Errorf("line %d: a %s block is not tested: use sh, console, or bash", b.line, b.kind)
	}
	if len(b.absent) > 0 {
		t.Errorf("line %d: tested with other values for what the block does not contain: %q", b.line, b.absent)
	}
	if b.kind != "sh" && b.kind != "console" {
		return
	}
	for _, name := range published.FindAllString(b.tested.Replace(b.text), -1) {
		if !s.link(t, name) {
			t.Logf("line %d: not tested without the published trace %s", b.line, name)
			return
		}
	}
	if b.kind == "console" {
		for _, tr := range b.transcripts(t) {
			t.Run(strings.TrimSpace(tr.command), func(t *testing.T) { s.tryTranscript(t, b, tr) })
		}
		return
	}
	t.Run(fmt.Sprintf("line %d", b.line), func(t *testing.T) {
		output, done := s.execute(t, b, s.withoutShown(b.text))
		b.checkTables(t, output, done)
		b.checkBesidePublished(t, output)
	})
}

// link puts a published trace into the folder, unless the page has made a file of
// that name, and reports whether it is there.
func (s *scratch) link(t *testing.T, name string) bool {
	t.Helper()
	from, to := absolute(t, filepath.Join(root, "..", "shared", "traces", name)), filepath.Join(s.dir, name)
	if _, err := os.Stat(to); err == nil {
		return true
	}
	if _, err := os.Stat(from); err != nil {
		return false
	}
	if err := os.Symlink(from, to); err != nil {
		t.Fatal(err)
	}
	return true
}

// withoutShown removes the commands that a console block of the page executes,
// too.
func (s *scratch) withoutShown(script string) (kept string) {
	for line := range strings.Lines(script) {
		if command, _, _ := strings.Cut(line, " #"); !s.shown[strings.TrimSpace(command)] {
			kept += line
		}
	}
	return kept
}

// tryTranscript executes a command and compares its output with the page's, which does not
// depend on the machine.
func (s *scratch) tryTranscript(t *testing.T, b codeBlock, tr transcript) {
	if output, _ := s.execute(t, b, tr.command); output != tr.output {
		t.Errorf("it prints\n%s\nand %s:%d says\n%s", output, s.page.name, b.line, tr.output)
	}
}

// execute has a shell execute commands, and returns their output and those of
// moontide.
func (s *scratch) execute(t *testing.T, b codeBlock, script string) (output string, done []executed) {
	t.Helper()
	script = strings.ReplaceAll(b.tested.Replace(script), pageURL, s.url)
	talk, record := s.create(t, "output"), s.create(t, "record")
	defer talk.Close()
	defer record.Close()
	ctx, stop := context.WithTimeout(t.Context(), blockTimeout)
	defer stop()
	cmd := exec.CommandContext(ctx, s.shell, "-e", "-c", script)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, talk, talk
	cmd.Env = append(moontide("").Env, asMoontide+"="+pageMode, recordOfPage+"="+record.Name(),
		"PATH="+s.bin, "HOME="+s.own, "XDG_CACHE_HOME="+s.own)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = end
	err := cmd.Run()
	end() // what still runs in the background
	if ctx.Err() != nil {
		t.Fatalf("still running after %v:\n%s\n%s", blockTimeout, script, written(t, talk))
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	output = strings.ReplaceAll(written(t, talk), s.url, pageURL)
	for line := range strings.Lines(written(t, record)) {
		var e executed
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		done = append(done, e)
	}
	s.done = append(s.done, done...)
	if problem := b.problem(done, cmd.ProcessState.ExitCode()); problem != "" {
		t.Fatalf("%s:%d: %s\n%s\n%s", s.page.name, b.line, problem, script, output)
	}
	return output, done
}

// problem says what is wrong with the exit statuses of a block's commands.
func (b *codeBlock) problem(done []executed, status int) string {
	last := 0
	for _, e := range done {
		if last = e.Status; e.Status != 0 && e.Status != b.exits && !e.busy() {
			return fmt.Sprintf("moontide %s: exit status %d", strings.Join(e.Args, " "), e.Status)
		}
	}
	if n := len(done); n > 0 && b.exits != 0 && (last == b.exits || done[n-1].busy()) {
		return ""
	}
	if status != b.exits {
		return fmt.Sprintf("exit status %d, want %d", status, b.exits)
	}
	return ""
}

// create makes a file outside the page's folder.
func (s *scratch) create(t *testing.T, name string) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(s.own, name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// written returns what is in a file.
func written(t *testing.T, file *os.File) string {
	t.Helper()
	text := read(t, file.Name())
	return string(text)
}

// copySamples copies what is in traces, without pictures: those the page makes.
func (s *scratch) copySamples(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, "traces"), func(from string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, from)
		if err != nil {
			return err
		}
		to := filepath.Join(s.dir, name)
		switch {
		case entry.IsDir():
			return os.Mkdir(to, 0o777)
		case filepath.Dir(name) == "traces" && filepath.Ext(name) == ".png":
			return nil
		}
		return os.WriteFile(to, read(t, from), 0o666)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.page.pictures() {
		if err := os.MkdirAll(filepath.Join(s.dir, path.Dir(p.name)), 0o777); err != nil {
			t.Fatal(err)
		}
	}
}

// checkSamples compares the sample traces and runs with the project's, because a
// page's commands may have made them.
func (s *scratch) checkSamples(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(s.dir, "traces"), func(made string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(made) == ".png" {
			return err
		}
		name, err := filepath.Rel(s.dir, made)
		if err != nil {
			return err
		}
		if want, err := os.ReadFile(filepath.Join(root, name)); err == nil && !bytes.Equal(read(t, made), want) {
			t.Errorf("%s is not what the commands of %s make", name, s.page.name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// shown is a picture of a page.
type shown struct {
	name       string // path from the root
	screenshot string // the page that it shows, if any
}

var pictureTag = regexp.MustCompile(`(?:<!-- screenshot of (\S+) -->\s*)?(?:<a [^>]*>)?(?:<p[^>]*>\s*)?(?:<img[^>]* src="([^"]+)"|!\[[^\]]*\]\(([^)\s]+)\))`)

// pictures returns the pictures of a page that are files of the project.
func (p *page) pictures() (found []shown) {
	for _, tag := range pictureTag.FindAllStringSubmatch(p.prose(), -1) {
		if target := tag[2] + tag[3]; !isURL.MatchString(target) {
			found = append(found, shown{path.Join(path.Dir(p.name), target), tag[1]})
		}
	}
	return found
}

// checkPictures checks that a page's commands have made its pictures.
func (s *scratch) checkPictures(t *testing.T) {
	for _, p := range s.page.pictures() {
		t.Run(p.name, func(t *testing.T) {
			want := read(t, filepath.Join(root, p.name))
			if len(want) > 256<<10 {
				t.Errorf("%d bytes are more than a page should load", len(want))
			}
			switch html := p.screenshot; {
			case html != "": // fonts and smoothing depend on the machine
				if page := read(t, filepath.Join(s.dir, html)); !bytes.Contains(page, []byte(`<h2 class="VALID">Verdict: VALID</h2>`)) {
					t.Errorf("%s begins with\n%.300s", html, page)
				}
			case *update:
				write(t, root, p.name, readFile(t, filepath.Join(s.dir, p.name)))
			case runtime.GOARCH != "amd64": // CPUs round differently
			case !bytes.Equal(pixels(t, read(t, filepath.Join(s.dir, p.name))), pixels(t, want)):
				t.Error("it is another picture than that of the page: run the test with -update-docs, and look at it")
			}
		})
	}
}

// checkTables compares the Markdown tables of loads that a block printed with those shown
// after it, which may have more rows.
func (b *codeBlock) checkTables(t *testing.T, output string, done []executed) {
	t.Helper()
	if !slices.ContainsFunc(done, func(e executed) bool { return e.verb() == "bench" && slices.Contains(e.Args, "markdown") }) {
		return
	}
	rows := 0
	for line := range strings.Lines(output) {
		if strings.Count(line, "|") == 10 && !strings.HasPrefix(line, "| ---") { // of the load and its metrics
			rows++
			if !strings.Contains(b.after, "\n"+line) {
				t.Errorf("the page's table has no line %s", line)
			}
		}
	}
	if rows < 3 {
		t.Errorf("%d rows of a table in\n%s", rows, output)
	}
}

// checkBesidePublished compares the columns named moontide of the table after a
// block with what the block printed: one column per report, rows named after its
// lines.
func (b *codeBlock) checkBesidePublished(t *testing.T, output string) {
	t.Helper()
	var rows [][]string
	for _, row := range tableRow.FindAllStringSubmatch(firstTable.FindString(b.after), -1) {
		rows = append(rows, strings.Split(row[1], " | "))
	}
	if len(rows) < 3 || !slices.Contains(rows[0], "moontide") {
		return
	}
	for _, row := range rows[2:] {
		printed := regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(row[0])+`: +([0-9.]+)$`).FindAllStringSubmatch(output, -1)
		for column, name := range rows[0] {
			if name != "moontide" {
				continue
			}
			if len(printed) == 0 || len(row) != len(rows[0]) {
				t.Errorf("line %d: the block printed no value for a column of %v", b.line, row)
				break
			}
			said := figures.FindStringSubmatch(row[column])
			got, err := strconv.ParseFloat(printed[0][1], 64)
			if err != nil || said == nil || strconv.FormatFloat(got, 'f', len(said[1]), 64) != strings.ReplaceAll(said[0], ",", "") {
				t.Errorf("%s is %v, and the page says %s", row[0], got, row[column])
			}
			printed = printed[1:]
		}
	}
}

var (
	figures    = regexp.MustCompile(`[0-9][0-9,]*(?:\.([0-9]+))?`)
	firstTable = regexp.MustCompile(`(?m)(?:^\| .* \|\n)+`)
	tableRow   = regexp.MustCompile(`(?m)^\| (.*) \|$`)
)
