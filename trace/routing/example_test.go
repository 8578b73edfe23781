package routing_test

import (
	"fmt"

	"moontide/trace/routing"
)

// Worker 1 has most of the prompt in its cache, but also a queue.
func Example() {
	router, err := routing.New(routing.Prefix, 2, nil)
	if err != nil {
		panic(err)
	}
	queue := []int{0, 500}
	load := func(worker int) routing.Load { return routing.Load{Tokens: queue[worker]} }
	cached := func(worker int) int { return 900 * worker }

	fmt.Println(router.Pick(routing.Request{Tokens: 1000}, load, cached))
	queue[1] = 950
	fmt.Println(router.Pick(routing.Request{Tokens: 1000}, load, cached))
	// Output:
	// 1
	// 0
}
