package spec

import "slices"

// clientKeys lists the keys of a client. At the top level they apply to all
// clients.
var clientKeys = []string{"isl", "unique_isl", "osl", "correlation", "shared", "sessions"}

// keysOf lists the keys of each mapping of a spec except distributions, whose
// keys follow from families.
var keysOf = map[string][]string{
	"":               slices.Concat([]string{"num_requests", "duration", "block_size", "seed", "rate", "arrival", "clients"}, clientKeys),
	"clients":        slices.Concat([]string{"name", "share", "rate", "arrival"}, clientKeys),
	"rate":           {"for", "at", "from", "to"},
	"arrival":        {"process", "cv", "bursts", "cycle"},
	"arrival.bursts": {"on", "off", "ratio"},
	"arrival.cycle":  {"period", "amplitude", "peak"},
	"shared":         {"count", "tokens", "zipf"},
	"sessions":       {"turns", "think_time", "new_tokens", "max_isl", "timestamps", "ttft", "tpot"},
}
