//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
