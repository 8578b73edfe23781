// Package monotonic provides the clock shared by all processes of a machine ([At]), to
// compare times between processes, and a precise timer ([NewTimer]).
package monotonic
