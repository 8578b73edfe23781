package main

import (
	"bytes"
	"image"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// pagePicture is a screenshot of a page. Fonts and smoothing depend on the
// machine, so no command reproduces the same picture.
const pagePicture = "traces/page.png"

// The README's commands make its pictures: the same pixels, except where CPUs
// round differently or time was measured.
func TestReadmePictures(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`<img src="([^"]+)"|!\[[^\]]*\]\(([^)]+)\)`).FindAllStringSubmatch(string(readme), -1)
	if len(shown) == 0 {
		t.Fatal("the README shows no picture")
	}
	for _, names := range shown {
		name := names[1] + names[2]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := picture(t, filepath.Join(root, name))
			if len(want) > 256<<10 {
				t.Errorf("%d bytes are more than a README should load", len(want))
			}
			if name == pagePicture {
				makePage(t, readme)
				return
			}
			command := regexp.MustCompile(`(?m)^go run \./cmd/moontide (.* --png ` + regexp.QuoteMeta(name) + `)$`).FindSubmatch(readme)
			if command == nil {
				t.Fatal("no command of the README makes it")
			}
			dir := t.TempDir()
			args := strings.Fields(string(command[1]))
			copySamples(t, dir)
			if args[0] == "report" {
				simulateReadme(t, dir, readme)
			}
			if args[0] == "bench" {
				measureSweep(t, dir, args, string(readme))
			} else {
				must(t, dir, args...)
			}
			got := picture(t, filepath.Join(dir, name))
			if gotSize, wantSize := sizeOf(t, got), sizeOf(t, want); gotSize.X != wantSize.X || gotSize.Y != wantSize.Y && args[0] != "bench" {
				t.Fatalf("it is %v, the README's is %v", gotSize, wantSize)
			}
			if runtime.GOARCH == "amd64" && args[0] != "bench" && !bytes.Equal(pixels(t, got), pixels(t, want)) {
				t.Error("it is another picture than the README's: make that anew, and look at it")
			}
		})
	}
}

// simulateReadme executes the runs that the README simulates.
func simulateReadme(t *testing.T, dir string, readme []byte) {
	t.Helper()
	for _, command := range simulateCommands.FindAllStringSubmatch(string(readme), -1) {
		must(t, dir, strings.Fields(command[1])...)
	}
}

// makePage makes the page that a picture of the README shows.
func makePage(t *testing.T, readme []byte) {
	t.Helper()
	command := regexp.MustCompile(`(?m)^go run \./cmd/moontide (report runs/\S+ --html (\S+))$`).FindSubmatch(readme)
	if command == nil {
		t.Fatal("no command of the README makes the page")
	}
	dir := t.TempDir()
	copySamples(t, dir)
	simulateReadme(t, dir, readme)
	must(t, dir, strings.Fields(string(command[1]))...)
	if page := picture(t, filepath.Join(dir, string(command[2]))); !bytes.Contains(page, []byte(`<h2 class="VALID">Verdict: VALID</h2>`)) {
		t.Errorf("the page begins with\n%.300s", page)
	}
}

// measureSweep measures the README's table again, with faster engines. The
// numbers depend on the machine; columns and loads must match the README.
func measureSweep(t *testing.T, dir string, args []string, readme string) {
	t.Helper()
	r := try(t, dir, "", append(args, "--step-base", "500us")...)
	if !r.measured() {
		t.Fatalf("exit status %d\n%s%s", r.status, r.out, r.err)
	}
	readme = strings.ReplaceAll(readme, `\* |`, " |") // marks a load that was not VALID here
	lines := 0
	for line := range strings.Lines(r.out) {
		load, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		switch _, err := strconv.Atoi(strings.TrimRight(load, `\* `)); {
		case !row || strings.Count(line, "|") != 10: // the verdict's evidence is another table
			continue
		case err == nil:
			line = "| " + strings.TrimRight(load, `\* `) + " |"
		}
		lines++
		if !strings.Contains(readme, "\n"+line) {
			t.Errorf("the README's table has no line %s", line)
		}
	}
	if lines < 4 {
		t.Errorf("%d lines of a table in\n%s", lines, r.out)
	}
}

// copySamples copies the sample traces to where the README expects them, because
// its commands write files next to them.
func copySamples(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "traces"), 0o777); err != nil {
		t.Fatal(err)
	}
	samples, err := filepath.Glob(filepath.Join(root, "traces", "*.jsonl"))
	if err != nil || len(samples) == 0 {
		t.Fatal(samples, err)
	}
	for _, sample := range samples {
		text, err := os.ReadFile(sample)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "traces"), filepath.Base(sample), string(text))
	}
}

func picture(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decoded(t *testing.T, data []byte) image.Image {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return picture
}

func sizeOf(t *testing.T, data []byte) image.Point { return decoded(t, data).Bounds().Size() }

// pixels returns the colours of a picture. The bytes of the file also depend on
// how it is compressed.
func pixels(t *testing.T, data []byte) []byte {
	t.Helper()
	picture := decoded(t, data)
	all := image.NewRGBA(picture.Bounds())
	draw.Draw(all, all.Bounds(), picture, picture.Bounds().Min, draw.Src)
	return all.Pix
}
