//go:build unix

package main

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"testing"
)

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

var sampleRun = regexp.MustCompile(`--out[ =](traces/[^\s;]+)`)

// removeSampleRuns removes the sample runs that a script makes: a run is not
// written over another.
func (s *scratch) removeSampleRuns(t *testing.T, script string) {
	t.Helper()
	for _, found := range sampleRun.FindAllStringSubmatch(script, -1) {
		if err := os.RemoveAll(filepath.Join(s.dir, found[1])); err != nil {
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
		if err != nil || s.isTimed(name) {
			return err
		}
		_, err = os.Stat(filepath.Join(filepath.Dir(made), "run.json"))
		inRun := err == nil
		if inRun && filepath.Base(name) != "requests.jsonl" { // other files say when it ran, and where
			return nil
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
			if p.screenshot != "" {
				s.checkScreenshot(t, p.screenshot)
				return
			}
			i := slices.IndexFunc(s.done, func(e executed) bool {
				return slices.ContainsFunc(e.values("png"), func(name string) bool { return path.Clean(name) == p.name })
			})
			if i < 0 {
				t.Fatalf("no command of %s makes it with --png", s.page.name)
			}
			s.comparePicture(t, p.name, want, s.measured(s.done[i]))
		})
	}
}

// comparePicture compares pixels, except where CPUs round differently or time was
// measured.
func (s *scratch) comparePicture(t *testing.T, name string, want []byte, measured bool) {
	t.Helper()
	got := read(t, filepath.Join(s.dir, name))
	if *update {
		if err := os.WriteFile(filepath.Join(root, name), got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	gotSize, wantSize := sizeOf(t, got), sizeOf(t, want)
	if gotSize.X != wantSize.X || gotSize.Y != wantSize.Y && !measured {
		t.Fatalf("it is %v, that of the page is %v", gotSize, wantSize)
	}
	if runtime.GOARCH == "amd64" && !measured && !bytes.Equal(pixels(t, got), pixels(t, want)) {
		t.Error("it is another picture than that of the page: run the test with -update-docs, and look at it")
	}
}

// checkScreenshot checks that a page's commands have made the HTML page that a
// picture shows. Fonts and smoothing depend on the machine, so no command
// reproduces the picture.
func (s *scratch) checkScreenshot(t *testing.T, html string) {
	t.Helper()
	verdict := regexp.MustCompile(`<h2 class="(VALID)">Verdict: VALID</h2>`)
	for _, e := range s.done {
		if slices.Contains(e.values("html"), html) && s.measured(e) || s.isTimed(html) {
			verdict = regexp.MustCompile(`<h2 class="[A-Z]+">Verdict: `)
		}
	}
	if page := read(t, filepath.Join(s.dir, html)); !verdict.Match(page) {
		t.Errorf("%s begins with\n%.300s", html, page)
	}
}
