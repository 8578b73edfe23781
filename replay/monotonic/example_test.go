package monotonic_test

import (
	"fmt"
	"time"

	"moontide/replay/monotonic"
)

func ExampleNewTimer() {
	rang := make(chan struct{})
	timer := monotonic.NewTimer(func() { close(rang) })
	defer timer.Stop()
	timer.Set(time.Now().Add(5 * time.Millisecond))
	<-rang
	fmt.Println("rang")
	// Output: rang
}
