package jsonscan_test

import (
	"fmt"

	"moontide/trace/jsonscan"
)

func Example() {
	c := jsonscan.New([]byte(`{"model": "m", "input_length": 6758, "hash_ids": [0, 1, 2]}`))
	var length int
	var ids []uint64
	for more := c.Open('{'); more; more = c.More('}') {
		switch string(c.Key()) {
		case "input_length":
			length = c.Int(1 << 30)
		case "hash_ids":
			ids = c.Uints(ids, 100)
		default:
			c.Skip()
		}
	}
	fmt.Println(length, ids, c.Done())
	// Output: 6758 [0 1 2] true
}
