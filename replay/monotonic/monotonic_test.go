package monotonic_test

import (
	"testing"
	"time"

	"moontide/replay/monotonic"
)

// Differences are equal on the shared clock and Go's, except for the time between
// the two readings.
func TestDifferencesHold(t *testing.T) {
	t.Parallel()
	const apart = time.Hour
	now := time.Now()
	got := time.Duration(monotonic.At(now.Add(apart)) - monotonic.At(now))
	if off := (got - apart).Abs(); off > time.Second {
		t.Errorf("an hour is %v", got)
	}
}
