// Package monotonic tells instants on a clock that processes of one machine
// share, so that what one stamped another can compare. [At] is all there is.
package monotonic
