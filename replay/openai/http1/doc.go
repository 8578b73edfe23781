// Package http1 is an HTTP/1.1 client for measuring streamed responses: it reports
// when the request was sent and when each part of the response arrived.
//
// A [Host] opens connections to one server and reuses idle ones. A request is one
// [Response] on one [Conn]. The body is passed piece by piece, with arrival times,
// to a [Sink]:
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
// A general-purpose client is unsuitable for measurements: it retries, accepts a
// stream that was cut between two chunks as complete, and reports when it parsed a
// header rather than when bytes arrived.
//
// On Linux, without TLS, one thread reads all connections and instants are when
// the kernel received the bytes (package poll). Otherwise each response is read by
// the goroutine that waits for it.
package http1
