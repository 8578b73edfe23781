package format_test

import (
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"moontide/trace/format"
)

// At returns the offset of a line in the text, whatever surrounds the line.
func TestLinesStandWhereAtSays(t *testing.T) {
	space := rapid.SampledFrom([]string{"", " ", "\t \r", "\u00a0", "\n", "\r\n\n"})
	word := rapid.OneOf(rapid.StringMatching(`[a-z]{1,5}`), rapid.Just(strings.Repeat("long", 100<<10)), rapid.Just("日 本"))
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		var want []string
		for _, w := range rapid.SliceOfN(word, 0, 6).Draw(t, "words") {
			b.WriteString(space.Draw(t, "before") + w + space.Draw(t, "behind") + "\n")
			want = append(want, w)
		}
		text := strings.TrimSuffix(b.String(), rapid.SampledFrom([]string{"", "\n"}).Draw(t, "cut"))
		in, err := format.NewText(strings.NewReader("\xef\xbb\xbf"+text), "t")
		if err != nil {
			t.Fatal(err)
		}
		for {
			line, err := in.Line()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(line) == 0 {
				continue
			}
			if at := in.At(); text[at:at+int64(len(line))] != string(line) || string(line) != want[0] {
				t.Fatalf("%.20q is not at %d", line, at)
			}
			want = want[1:]
		}
		if len(want) > 0 {
			t.Fatalf("%d lines are left", len(want))
		}
	})
}

// UTF-16, which some spreadsheets write, is reported as such.
func TestUTF16(t *testing.T) {
	for _, text := range []string{"\xff\xfe{\x00", "\xfe\xff\x00{"} {
		if _, err := format.NewText(strings.NewReader(text), "t"); err == nil || err.Error() != "t:1: the file is in UTF-16: save it in UTF-8" {
			t.Error(err)
		}
	}
}
