package openai

import (
	"encoding/binary"
	"time"
)

// gaps are the times between the chunks of an answer, each as many bytes as it
// needs: four where a slice of durations takes eight. Ten thousand answers are
// under way at once.
type gaps struct {
	bytes []byte
	n     int
}

func (g *gaps) add(d time.Duration) {
	g.bytes = binary.AppendUvarint(g.bytes, uint64(d))
	g.n++
}

func (g *gaps) durations() []time.Duration {
	if g.n == 0 {
		return nil
	}
	out := make([]time.Duration, 0, g.n)
	for rest := g.bytes; len(rest) > 0; {
		d, size := binary.Uvarint(rest)
		out = append(out, time.Duration(d))
		rest = rest[size:]
	}
	return out
}
