// Package monotonic has the clock that the processes of one machine share, so
// that an instant that one of them stamped can be compared by another ([At]),
// and a timer that is precise on that clock ([NewTimer]).
package monotonic
