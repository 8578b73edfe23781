// Package tracetest has helpers for tests and benchmarks: [Published] finds a
// published trace, [Graph] makes the graph of rows, [Golden] compares output with a file,
// and [Waiting] is for packages whose tests wait.
package tracetest

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"moontide/trace"
)

// Waiting runs more parallel tests at once than there are CPU cores, for packages whose
// tests mostly wait, unless -parallel says otherwise. TestMain calls it.
func Waiting() {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		parallel.Value.Set(strconv.Itoa(4 * runtime.GOMAXPROCS(0)))
	}
}

// Published returns the path of a published trace in ../shared/traces, relative to
// the root of the project. It skips the test if the trace is missing.
func Published(tb testing.TB, name string) string {
	tb.Helper()
	path := filepath.Join(Root(tb), "..", "shared", "traces", name)
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("the published trace is missing: %v", err)
	}
	return path
}

// Graph returns the graph of rows. t is a testing.TB or a *rapid.T.
func Graph(t interface {
	Helper()
	Fatal(args ...any)
}, rows ...trace.Request) *trace.Graph {
	t.Helper()
	var b trace.GraphBuilder
	for i, r := range rows {
		b.Add(r, i+1)
	}
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Conversation reads the conversation trace that the Mooncake project published.
// Pass [moontide/trace/format.Open] and its options; that package's own tests use
// this one, so this one cannot import it.
func Conversation[R interface {
	Requests() trace.Requests
	io.Closer
}, O any](tb testing.TB, open func(path string, opts O) (R, error), opts O) []trace.Request {
	tb.Helper()
	r, err := open(Published(tb, "conversation_trace.jsonl"), opts)
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	rows, err := trace.Collect(r.Requests())
	if err != nil {
		tb.Fatal(err)
	}
	return rows
}

// Root returns the root folder of the project.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

var update = flag.Bool("update", false, "rewrite the golden files; review the changes")

// Golden fails if got differs from the file at path. With -update it rewrites the
// file.
func Golden(tb testing.TB, path, got string) {
	tb.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		tb.Errorf("%s, -golden +got:\n%s", path, diff)
	}
}
