package run

import (
	"fmt"
	"slices"
	"time"

	"moontide/replay"
)

// maxBadRecords is the share of lost, repeated or impossible records above which a
// run is INVALID.
const maxBadRecords = 0.01

// recordedRows compares the rows of the records with those of the run.
type recordedRows struct {
	rows     int // of the trace; 0 is unknown
	seen     replay.RowSet
	distinct int
	repeated int // records of a row that had one, or that the trace does not have
}

func (c *recordedRows) add(row int) {
	switch {
	case c.rows == 0:
	case row < 0 || row >= c.rows || c.seen.Has(row):
		c.repeated++
	default:
		c.seen.Add(row)
		c.distinct++
	}
}

// isImpossible reports whether the times of a record contradict each other by more
// than clocks may differ, as after an edit: no run records that.
func isImpossible(rec *replay.Record) bool {
	const clocks = 100 * time.Millisecond
	return isAnswered(rec) && (rec.First.Value < rec.Sent.Value-clocks || rec.Last.Value < rec.First.Value || rec.Done < rec.Last.Value-clocks ||
		rec.FirstVisible.Set && (rec.FirstVisible.Value < rec.First.Value || rec.FirstVisible.Value > rec.Last.Value) ||
		len(rec.Gaps) > 0 && slices.Min(rec.Gaps) < 0)
}

// checkRecords checks for requests whose records are lost or not of this run.
func (v *Verdict) checkRecords(r *Result) {
	if r.Unreadable > 0 {
		v.share("records", r.Unreadable, r.Records, limit(maxBadRecords).any(), "records cannot be read",
			fmt.Sprintf("their requests are missing from all results; restore the file from a copy or run again; first error: %v", r.FirstUnreadable))
	}
	if r.Missing > 0 {
		v.share("records", r.Missing, r.Sent, limit(maxBadRecords).any(), "sent requests have no record",
			"they are missing from all results: they were in flight when the run was killed, or the record was truncated; resume the run or run again")
	}
	if r.Impossible > 0 {
		v.share("records", r.Impossible, r.Records, limit(maxBadRecords).any(), "records have contradictory times",
			"an answer cannot arrive before its request is sent; restore the file from a copy or run again")
	}
	if r.Repeated > 0 {
		v.share("records", r.Repeated, r.Records, limit(maxBadRecords).any(), "records are duplicates or belong to another trace",
			"their requests are included in the results; restore the file from a copy or run again")
	}
}
