// Package stamp reports when the kernel received the data that was read from a socket.
//
//	listener = stamp.Listen(listener)
//	conn, err := listener.Accept()
//	n, err := conn.Read(b)
//	at := conn.(*stamp.Conn).Arrived() // of b[:n], however late it was read
//
// A busy program reads late, by milliseconds if other processes take the CPU. But the
// kernel stamps each segment when it receives it (SO_TIMESTAMPNS), and passes the stamp on
// with the bytes. [Clock] converts stamps to instants.
//
// It works on Linux only; elsewhere instants are those of the reads.
package stamp
