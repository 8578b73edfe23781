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
				write(t, root, p.name, string(read(t, filepath.Join(s.dir, p.name))))
			case runtime.GOARCH != "amd64": // CPUs round differently
			case !bytes.Equal(pixels(t, read(t, filepath.Join(s.dir, p.name))), pixels(t, want)):
				t.Error("it is another picture than that of the page: run the test with -update-docs, and look at it")
			}
		})
	}
}
