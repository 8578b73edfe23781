// Package http1 is an HTTP/1.1 client for measuring streamed responses: it says
// when the request left and when each part of the response arrived.
//
// A [Host] opens connections to one server and keeps idle ones for reuse. A
// request is one [Response] on one [Conn]; the body goes piece by piece, with
// the instant of its arrival, to a [Sink]:
//
//	conn, err := host.Conn(ctx, deadline)
//	r := &http1.Response{Sink: sink, Deadline: deadline}
//	conn.Begin(r, head, body)
//	sent, err := conn.Wait(ctx)
//	if r.Reusable {
//		host.Put(conn)
//	} else {
//		conn.Close()
//	}
//
// A general-purpose client is too helpful for a measurement: it retries, takes
// a stream that was cut between two chunks for a complete one, and reports when
// it parsed a header rather than when bytes arrived.
//
// On Linux, without TLS, one thread reads all connections and instants are those
// at which the kernel received the bytes (package poll). Otherwise each response
// is read by the goroutine that waits for it.
package http1
