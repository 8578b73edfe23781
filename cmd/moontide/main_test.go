package main

import (
	"bytes"
	"image"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"moontide/trace/tracetest"
)

// root is the module's root, from the folder that tests run in.
const root = "../.."

// asMoontide, in the environment, turns the test binary into the command, so
// that tests see exit statuses, signals and streams as a shell does.
const asMoontide = "MOONTIDE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	switch os.Getenv(asMoontide) {
	case "":
	case workerMode:
		work(os.Stdin, os.Stdout)
		return
	case pageMode:
		os.Exit(asPageCommand())
	default:
		os.Exit(execute(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}, interrupts()))
	}
	os.Unsetenv("COLUMNS") // reports are 80 columns wide
	tracetest.Waiting()
	code := m.Run()
	workers.stop()
	os.Exit(code)
}

func moontide(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	// Tests do not use a calibration of this machine, on any system.
	none := filepath.Join(os.TempDir(), "moontide-no-cache")
	cmd.Env = append(os.Environ(), asMoontide+"=1", "XDG_CACHE_HOME="+none, "HOME="+none, "LocalAppData="+none)
	cmd.Dir = dir
	return cmd
}

// limited runs a command under a limit of the shell, such as "-n 120".
func limited(cmd *exec.Cmd, limit string) *exec.Cmd {
	cmd.Args = append([]string{"sh", "-c", "ulimit " + limit + ` && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	return cmd
}

// result holds the outcome of a command.
type result struct {
	out, err string
	status   int
}

// measured reports whether a replay completed. It may be INVALID on a busy
// machine.
func (r result) measured() bool { return r.status == exitDone || r.status == exitInvalid }

// must runs a command that must succeed and returns its data.
func must(t *testing.T, dir string, args ...string) string {
	t.Helper()
	r := try(t, dir, "", args...)
	if r.status != exitDone && !((args[0] == "replay" || args[0] == "report") && r.measured()) {
		t.Fatalf("moontide %s: exit status %d\n%s%s", strings.Join(args, " "), r.status, r.out, r.err)
	}
	return r.out
}

// try runs a command in a folder. Without standard input it runs in a worker,
// which saves the start of a process.
func try(t *testing.T, dir, stdin string, args ...string) result {
	t.Helper()
	if stdin == "" {
		return workers.run(t, job{dir, args})
	}
	cmd := moontide(dir, args...)
	cmd.Stdin = strings.NewReader(stdin)
	return finish(t, cmd)
}

// finish runs a command to its end.
func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil {
		if _, exited := err.(*exec.ExitError); !exited {
			t.Fatal(err)
		}
	}
	return result{out: out.String(), err: talk.String(), status: cmd.ProcessState.ExitCode()}
}

// files lists what is in a folder and below.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			t.Fatal(err)
		}
		if name, _ := filepath.Rel(dir, path); name != "." {
			names = append(names, name)
		}
		return nil
	})
	return names
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// sample is a trace of 100 requests that arrive in bursts every 3 s.
func sample(t *testing.T) string { return absolute(t, "testdata/conversation.jsonl") }

// anyTrace returns the public conversation trace if it is available and the
// sample otherwise, and the smaller of a number of rows and the rows that it has.
func anyTrace(t *testing.T, most int) (path string, rows int) {
	t.Helper()
	path = filepath.Join(root, "..", "shared", "traces", "conversation_trace.jsonl")
	if _, err := os.Stat(path); err == nil {
		return absolute(t, path), most
	}
	return sample(t), min(most, 100)
}

// realTrace is the public conversation trace, if available.
func realTrace(t *testing.T) string {
	t.Helper()
	return absolute(t, tracetest.Published(t, "conversation_trace.jsonl"))
}

func mkdir(t *testing.T, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// unwrapped removes the line breaks of a report.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

func read(t *testing.T, path string) []byte {
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

// pixels returns the colours of a picture. The bytes of the file also depend on
// how it is compressed.
func pixels(t *testing.T, data []byte) []byte {
	t.Helper()
	picture := decoded(t, data)
	all := image.NewRGBA(picture.Bounds())
	draw.Draw(all, all.Bounds(), picture, picture.Bounds().Min, draw.Src)
	return all.Pix
}
