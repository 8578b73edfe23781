package bench

import (
	"strings"
	"testing"
)

func TestCheckOpenFiles(t *testing.T) {
	for _, tc := range []struct {
		limit, rows, most int
		embedded          bool
		want              string
	}{
		{0, 1e6, 1e6, true, ""},
		{1128, 1e6, 1000, false, ""},
		{1128, 1e6, 1001, false, "error: a maximum concurrency of 1001 exceeds the limit of 1128 open files (ulimit -n), which allows 1000 requests in flight"},
		{1128, 1e6, 500, true, ""},
		{1128, 1e6, 501, true, "allows 500 requests"},
		{1128, 1000, 1e6, false, ""}, // never that many in flight
		{1128, 1000, 0, false, ""},
		{1128, 1001, 0, false, "note: the limit of 1128 open files (ulimit -n) allows 1000 requests in flight, and the trace has 1001"},
		{64, 1, 1, false, "allows 0 requests"},
	} {
		notes, err := checkOpenFiles(tc.limit, tc.rows, tc.most, tc.embedded)
		got := ""
		if err != nil {
			got = "error: " + err.Error()
		} else if len(notes) > 0 {
			got = "note: " + notes[0]
		}
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}
