package run

import "fmt"

// maxUnreadable is the share of records that may be unreadable.
const maxUnreadable = 0.01

// checkRecords checks for requests whose records are lost.
func (v *Verdict) checkRecords(r *Result) {
	if r.Unreadable > 0 {
		v.share("records", r.Unreadable, r.Records, limit(maxUnreadable).any(), "records cannot be read",
			fmt.Sprintf("their requests are in no figure; restore the file from a copy or run again; the first: %v", r.FirstUnreadable))
	}
}
