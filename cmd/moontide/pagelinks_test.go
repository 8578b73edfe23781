package main

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
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
