package main

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"moontide/trace/atomicfile"
)

// pageLimits holds the most lines of a page, for pages whose limit is not
// guideLimit; 0 is none.
var pageLimits = map[string]int{
	"README.md":               150,
	"cmd/moontide/CHANGES.md": 300, // a row for each change
	".ci/engines/README.md":   0,   // a row for each check
	".ci/fidelity/README.md":  0,   // a row for each source and aspect
}

const guideLimit = 200

// Commands of pages may replace the files in traces that they made, as in a clone.
func TestSamplesMayBeReplaced(t *testing.T) {
	t.Parallel()
	made := regexp.MustCompile(`(?:-o |png=)(traces/[\w./-]+)`)
	seen := 0
	for _, p := range pages(t) {
		for _, match := range made.FindAllStringSubmatch(p.text, -1) {
			seen++
			if err := atomicfile.Check(filepath.Join(root, match[1])); err != nil {
				t.Errorf("%s: %s: %v", p.name, match[0], err)
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d commands of pages write to traces", seen)
	}
}

// page is a Markdown file of the project.
type page struct {
	name   string // path from the root
	text   string
	blocks []codeBlock
}

// codeBlock is a fenced code block of a page.
type codeBlock struct {
	line  int    // of its fence
	kind  string // its language: sh and console blocks are executed
	text  string
	after string // the page's text from here to the next block

	// From comments directly before the block:
	tested *strings.Replacer // <!-- tested with: A => B; C => D -->
	absent []string          // the A that the block does not contain
	exits  int               // <!-- exits N -->, the status of its last command
}

// pages returns the Markdown files of the project, without test data and what
// runs left behind.
func pages(t *testing.T) []*page {
	t.Helper()
	var found []*page
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "testdata", "runs", "node_modules"}, entry.Name()) && file != filepath.Join(root, "traces", "runs"):
			return filepath.SkipDir
		case entry.IsDir() || path.Ext(file) != ".md":
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		found = append(found, &page{filepath.ToSlash(name), string(text), codeBlocks(t, name, string(text))})
		return err
	})
	if err != nil || len(found) < 2 {
		t.Fatalf("%d pages: %v", len(found), err)
	}
	return found
}

var (
	fence       = regexp.MustCompile("^( *)(```+)([a-z-]*)")
	testedWith  = regexp.MustCompile(`(?s)<!-- tested with: (.*?) -->`)
	exitComment = regexp.MustCompile(`<!-- exits ([0-9]+) -->`)
)

// codeBlocks finds the code blocks of a page.
func codeBlocks(t *testing.T, name, text string) []codeBlock {
	t.Helper()
	var blocks []codeBlock
	var between strings.Builder // the text since the last block
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		opening := fence.FindStringSubmatch(lines[i])
		if opening == nil {
			between.WriteString(lines[i])
			continue
		}
		b := codeBlock{line: i + 1, kind: opening[3]}
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != opening[2]; i++ {
			b.text += strings.TrimPrefix(lines[i], opening[1])
		}
		if i == len(lines) {
			t.Fatalf("%s:%d: the block does not end", name, b.line)
		}
		b.obey(t, name, between.String())
		if n := len(blocks); n > 0 {
			blocks[n-1].after = between.String()
		}
		between.Reset()
		blocks = append(blocks, b)
	}
	if n := len(blocks); n > 0 {
		blocks[n-1].after = between.String()
	}
	return blocks
}

// obey reads the comments at the end of the text before a block.
func (b *codeBlock) obey(t *testing.T, name, before string) {
	t.Helper()
	comments := ""
	for {
		before = strings.TrimSpace(before)
		start := strings.LastIndex(before, "<!--")
		if start < 0 || !strings.HasSuffix(before, "-->") {
			break
		}
		before, comments = before[:start], before[start:]+comments
	}
	if found := exitComment.FindStringSubmatch(comments); found != nil {
		b.exits, _ = strconv.Atoi(found[1])
	}
	var pairs []string
	for _, found := range testedWith.FindAllStringSubmatch(comments, -1) {
		for pair := range strings.SplitSeq(found[1], "; ") {
			from, to, ok := strings.Cut(pair, " => ")
			if !ok {
				t.Fatalf("%s:%d: no => in %q", name, b.line, pair)
			}
			if from = strings.TrimSpace(from); !strings.Contains(b.text, from) {
				b.absent = append(b.absent, from)
			}
			pairs = append(pairs, from, strings.TrimSpace(to))
		}
	}
	b.tested = strings.NewReplacer(pairs...)
}

// transcript is one command of a console block and its output.
type transcript struct{ command, output string }

// transcripts returns the commands of a console block. They follow "$ ", go on
// behind a backslash, and are followed by their output.
func (b *codeBlock) transcripts(t *testing.T) []transcript {
	t.Helper()
	var found []transcript
	goesOn := false
	for line := range strings.Lines(b.text) {
		command, starts := strings.CutPrefix(line, "$ ")
		switch {
		case goesOn:
			found[len(found)-1].command += line
		case starts:
			found = append(found, transcript{command: command})
		case len(found) == 0:
			t.Fatalf("line %d: the console block starts without a command", b.line)
		default:
			found[len(found)-1].output += line
			continue
		}
		goesOn = strings.HasSuffix(line, "\\\n")
	}
	return found
}

// Pages are short enough to be read.
func TestPageLengths(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		limit, special := pageLimits[p.name]
		if !special && !strings.HasPrefix(p.name, "cmd/moontide/reference/") {
			limit = guideLimit
		}
		if lines := strings.Count(p.text, "\n"); limit > 0 && lines > limit {
			t.Errorf("%s has %d lines, more than %d", p.name, lines, limit)
		}
	}
}

// The README's test command is the one used by continuous integration.
func TestReadmeTestCommand(t *testing.T) {
	t.Parallel()
	readme := read(t, root+"/README.md")
	script := read(t, root+"/.ci/run")
	if !strings.Contains(string(readme), "\n"+testCommand+" ") || !strings.Contains(string(script), "\n"+testCommand+"\n") {
		t.Errorf("%s is not in both", testCommand)
	}
}

// testCommand runs all tests, installCommand installs moontide.
const (
	testCommand    = "go test ./..."
	installCommand = "go install ./cmd/moontide"
)

var (
	isURL       = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
	codeSpan    = regexp.MustCompile("`+[^`]*`+")
	linkTarget  = regexp.MustCompile(`\]\(<?([^)\s>]*)>?(?:\s+"[^"]*")?\)|(?m)^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)|(?:src|href)="([^"]*)"`)
	heading     = regexp.MustCompile(`(?m)^#{1,6}\s+(.*?)\s*#*\s*$`)
	headingLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	namedAnchor = regexp.MustCompile(`<a (?:name|id)="([^"]+)"`)
)

// prose returns a page without its code blocks.
func (p *page) prose() string {
	var prose strings.Builder
	closing := ""
	for line := range strings.Lines(p.text) {
		opening := fence.FindStringSubmatch(line)
		switch {
		case closing != "":
			if strings.TrimSpace(line) == closing {
				closing = ""
			}
		case opening != nil:
			closing = opening[2]
		default:
			prose.WriteString(line)
		}
	}
	return prose.String()
}

// anchors returns what links to a page can name after the #: its headings by
// GitHub's rule, and named anchors.
func (p *page) anchors() map[string]bool {
	found := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(p.prose(), -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r):
				return unicode.ToLower(r)
			}
			return -1
		}, headingLink.ReplaceAllString(h[1], "$1"))
		name := slug
		for n := 1; found[name]; n++ {
			name = slug + "-" + strconv.Itoa(n)
		}
		found[name] = true
	}
	for _, a := range namedAnchor.FindAllStringSubmatch(p.prose(), -1) {
		found[a[1]] = true
	}
	return found
}

// Links of pages lead to files and headings of the project, or are well-formed
// https URLs.
func TestPageLinks(t *testing.T) {
	t.Parallel()
	all := map[string]*page{}
	for _, p := range pages(t) {
		all[p.name] = p
	}
	for _, p := range all {
		for _, link := range linkTarget.FindAllStringSubmatch(codeSpan.ReplaceAllString(p.prose(), "code"), -1) {
			target := link[1] + link[2] + link[3]
			if problem := p.broken(target, all); problem != "" {
				t.Errorf("%s: link to %s: %s", p.name, target, problem)
			}
		}
	}
}

// broken says what is wrong with a link of a page, if anything.
func (p *page) broken(target string, all map[string]*page) string {
	if isURL.MatchString(target) {
		if u, err := url.Parse(target); err != nil || u.Scheme != "https" || !strings.Contains(u.Host, ".") {
			return "not the https URL of a host"
		}
		return ""
	}
	file, anchor, anchored := strings.Cut(target, "#")
	name := p.name
	if file != "" {
		name = path.Join(path.Dir(p.name), file)
	}
	if _, err := os.Stat(filepath.Join(root, name)); err != nil || strings.HasPrefix(name, "../") {
		return "no such file in the project"
	}
	if to, isPage := all[name]; anchored && (!isPage || !to.anchors()[anchor]) {
		return "no such heading"
	}
	return ""
}
