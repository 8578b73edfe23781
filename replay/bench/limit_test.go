package bench_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moontide/replay/bench"
	"moontide/trace"
)

// With a limit on rows, the rest of a large trace is not read: here it is a hole of
// 64 GiB.
func TestLimitLeavesTheRestUnread(t *testing.T) {
	t.Parallel()
	row := `{"timestamp": %d, "input_length": %d, "output_length": 2, "hash_ids": [1, %d]}` + "\n"
	var text strings.Builder
	for i := range 8 {
		fmt.Fprintf(&text, row, i, 1024-i%2*511, 2+i)
	}
	path := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 64<<30); err != nil {
		t.Skip("no sparse files: ", err)
	}
	result, err := bench.Run(context.Background(), bench.Config{
		Trace: bench.Trace{Path: path}, Pacing: trace.Pacing{Limit: 5}, Virtual: true, Dir: filepath.Join(t.TempDir(), "run"),
	})
	if err != nil {
		t.Fatal(err)
	}
	first := strings.Join(strings.SplitAfter(text.String(), "\n")[:5], "")
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(first)))
	if got := result.Run.Trace; result.Run.Rows != 5 || got.BlockSize != 512 || got.DigestRows != 5 || got.SHA256 != want {
		t.Errorf("%d rows, %+v, want the SHA-256 %s", result.Run.Rows, got, want)
	}
}
