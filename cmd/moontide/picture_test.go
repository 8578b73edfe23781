package main

import (
	"bytes"
	"image"
	_ "image/png"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// The README's commands make the pictures that it shows: the same bytes, but
// where the processor rounds in another way.
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
			command := regexp.MustCompile(`(?m)^go run \./cmd/moontide (.* --png ` + regexp.QuoteMeta(name) + `)$`).FindSubmatch(readme)
			if command == nil {
				t.Fatal("no command of the README makes it")
			}
			dir := t.TempDir()
			args := strings.Fields(string(command[1]))
			copySamples(t, dir)
			if args[0] == "report" { // of runs that the README makes
				for _, command := range simulateCommands.FindAllStringSubmatch(string(readme), -1) {
					must(t, dir, strings.Fields(command[1])...)
				}
			}
			must(t, dir, args...)
			got, want := picture(t, filepath.Join(dir, name)), picture(t, filepath.Join(root, name))
			if gotSize, wantSize := sizeOf(t, got), sizeOf(t, want); gotSize != wantSize {
				t.Fatalf("it is %v, the README's is %v", gotSize, wantSize)
			}
			if runtime.GOARCH == "amd64" && !bytes.Equal(got, want) {
				t.Error("it is another picture than the README's: make that anew, and look at it")
			}
			if len(want) > 256<<10 {
				t.Errorf("%d bytes are more than a README should load", len(want))
			}
		})
	}
}

// copySamples puts the sample traces where the README has them, to be written
// beside.
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

func sizeOf(t *testing.T, data []byte) image.Point {
	t.Helper()
	decoded, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return decoded.Bounds().Size()
}
