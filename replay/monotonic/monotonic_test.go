package monotonic_test

import (
	"testing"
	"time"

	"moontide/replay/monotonic"
)

// Instants are as far apart on the shared clock as on Go's, but for what lies
// between two looks at both.
func TestDifferencesHold(t *testing.T) {
	t.Parallel()
	const apart = time.Hour
	now := time.Now()
	got := time.Duration(monotonic.At(now.Add(apart)) - monotonic.At(now))
	if off := (got - apart).Abs(); off > time.Second {
		t.Errorf("an hour is %v", got)
	}
}
