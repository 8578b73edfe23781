package tokenizer

import (
	"testing"

	"github.com/dlclark/regexp2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(clocked{m}) }

// clocked stops the clock of the backtracking engine after the tests.
type clocked struct{ *testing.M }

func (c clocked) Run() int {
	defer regexp2.StopTimeoutClock()
	return c.M.Run()
}
