// Package fit estimates the costs of a simulated deployment
// ([moontide/replay/sim/engine]) from measurements of a real one: loads, and the
// throughput and latencies measured under them.
package fit
