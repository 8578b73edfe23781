// Package monotonic provides the clock shared by all processes of a machine
// ([At]), for comparing instants between processes, and a precise timer
// ([NewTimer]).
package monotonic
