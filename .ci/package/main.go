// Command package builds moontide for every platform of a release and packs the
// archives, with checksums and bills of materials. It is called by .ci/release. With
// -licenses it writes the licenses of the modules in these binaries instead.
package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	verify := flag.Bool("verify", false, "build again from a clone, in another folder and with an empty build cache, and compare the checksums")
	tagged := source{}
	flag.StringVar(&tagged.Version, "version", "", "version of a source archive without .git")
	flag.StringVar(&tagged.Commit, "commit", "", "commit of a source archive")
	flag.StringVar(&tagged.CommitDate, "date", "", "date of that commit in RFC 3339; the files in the archives get it")
	only := flag.String("only", "", "one platform, such as linux/arm64, instead of all")
	caller := flag.String("from", ".", "folder that DIR is relative to")
	onlyLicenses := flag.Bool("licenses", false, "write "+licenseFile+", after a dependency changed, and nothing else")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: .ci/release [--verify] [--only OS/ARCH] [--version V --commit C --date T] [DIR]\n\nDIR is dist by default.")
		flag.PrintDefaults()
	}
	flag.Parse()
	dir := cmp.Or(flag.Arg(0), "dist")
	if flag.NArg() > 0 && !filepath.IsAbs(dir) {
		dir = filepath.Join(*caller, dir)
	}
	err := error(nil)
	if *onlyLicenses {
		err = writeLicenses()
	} else {
		err = release(dir, *only, tagged, *verify)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// source is what the release is built from.
type source struct {
	Version, Commit, CommitDate string
	Modified                    bool
}

// platform is a Go system and architecture.
type platform struct{ system, architecture string }

// platforms are all platforms of a release.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}}

func (p platform) binary() string {
	if p.system == "windows" {
		return "moontide.exe"
	}
	return "moontide"
}

func release(dir, only string, tagged source, verify bool) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	targets := slices.DeleteFunc(slices.Clone(platforms), func(p platform) bool { return only != "" && only != p.system+"/"+p.architecture })
	if len(targets) == 0 {
		return fmt.Errorf("no binary is released for %q", only)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty", dir)
	}
	work, err := os.MkdirTemp("", "moontide-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := pack(dir, work, targets, tagged); err != nil || !verify {
		return err
	}
	if tagged.Version != "" {
		return errors.New("--verify needs a Git clone")
	}
	clone, again := filepath.Join(work, "another", "folder"), filepath.Join(work, "dist")
	for _, step := range []struct{ env, command []string }{
		{nil, []string{"git", "clone", "-q", ".", clone}},
		{[]string{"GOCACHE=" + filepath.Join(work, "cache")}, []string{"go", "-C", clone, "run", "./.ci/package", "-only", only, again}},
		{nil, []string{"git", "diff", "--no-index", "--stat", dir, again}},
	} {
		if err := run(step.env, step.command[0], step.command[1:]...); err != nil {
			return fmt.Errorf("building again: %w", err)
		}
	}
	fmt.Println("verified: a build from a clone has the same files")
	return nil
}

// pack builds for the platforms and writes the files of a release to dir.
func pack(dir, work string, targets []platform, tagged source) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	host := filepath.Join(work, "host", "moontide")
	if err := build(host, platform{}, tagged); err != nil {
		return err
	}
	from, err := sourceOf(host)
	if err != nil {
		return err
	}
	if tagged.Version != "" {
		from = tagged
	}
	date, err := time.Parse(time.RFC3339, from.CommitDate)
	switch {
	case from.Modified:
		return errors.New("the work tree is modified: commit first, so that the release can be built again")
	case from.Commit == "" || err != nil:
		return errors.New("commit and date are unknown: build in a Git clone (Go reads no data of linked worktrees), or give --version, --commit and --date")
	}
	shared, err := pages(host, work)
	if err != nil {
		return err
	}
	for _, p := range targets {
		name := fmt.Sprintf("moontide_%s_%s_%s", strings.TrimPrefix(from.Version, "v"), p.system, p.architecture)
		binary := filepath.Join(work, name, p.binary())
		if err := build(binary, p, tagged); err != nil {
			return err
		}
		files := append([]file{{binary, p.binary(), 0o755}}, shared...)
		if err := archive(filepath.Join(dir, name), p, files, date); err != nil {
			return err
		}
		if err := bill(filepath.Join(dir, name+".cdx.json"), binary, from); err != nil {
			return err
		}
		info, err := os.Stat(binary)
		if err != nil {
			return err
		}
		fmt.Printf("%s  %.1f MB\n", name, float64(info.Size())/1e6)
	}
	return sums(dir)
}

// build builds a static binary for a platform, or for this machine.
func build(path string, p platform, tagged source) error {
	stamps := "-s -w"
	if tagged.Version != "" {
		stamps += " -X main.taggedVersion=" + tagged.Version
	}
	vcs := fmt.Sprintf("-buildvcs=%t", tagged.Version == "")
	env := []string{"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0"}
	if p != (platform{}) {
		env = append(env, "GOOS="+p.system, "GOARCH="+p.architecture)
	}
	return run(env, "go", "build", "-trimpath", "-mod=readonly", vcs, "-ldflags", stamps, "-o", path, "./cmd/moontide")
}

func sourceOf(host string) (from source, err error) {
	info, err := buildinfo.ReadFile(host)
	if err != nil {
		return from, err
	}
	from.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			from.Commit = s.Value
		case "vcs.time":
			from.CommitDate = s.Value
		case "vcs.modified":
			from.Modified = s.Value == "true"
		}
	}
	return from, nil
}

// pages has the binary of this machine write what is the same on all platforms.
func pages(host, work string) ([]file, error) {
	files := []file{{"README.md", "README.md", 0o644}}
	for _, page := range []struct {
		name string
		args []string
	}{
		{"LICENSES.txt", []string{"--licenses"}},
		{"completions/moontide.bash", []string{"--completion", "bash"}},
		{"completions/_moontide", []string{"--completion", "zsh"}},
		{"completions/moontide.fish", []string{"--completion", "fish"}},
		{"man/moontide.1", []string{"--man"}},
	} {
		text, err := exec.Command(host, page.args...).Output()
		if err != nil {
			return nil, fmt.Errorf("moontide %s: %w", strings.Join(page.args, " "), err)
		}
		path := filepath.Join(work, "pages", filepath.FromSlash(page.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return nil, err
		}
		files = append(files, file{path, page.name, 0o644})
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return files, nil
}

func run(env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

const sumsFile = "SHA256SUMS"

// sums writes the checksums of all files, in the format of sha256sum.
func sums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), []byte(lines.String()), 0o644)
}
