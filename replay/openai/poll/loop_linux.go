package poll

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"moontide/replay/stamp"
	"moontide/trace/stats"
)

const (
	maxEvents = 1024 // per epoll call
	// backlogTime limits the time per round for connections that send faster than
	// they are read, so that the others are read soon.
	backlogTime = 200 * time.Microsecond
)

// Loop reads connections. Its methods may be called from any goroutine.
type Loop struct {
	epoll  int
	wakeup int // an eventfd that wakes the thread
	stamps int // a socket that keeps kernel stamps enabled; see stampAll

	mu       sync.Mutex
	commands []command
	closing  bool
	asleep   atomic.Bool  // the thread is waiting and must be woken
	writers  atomic.Int64 // exchanges that wait to write more
	ended    chan struct{}
	delays   *stats.Durations

	// Owned by the thread.
	clock     stamp.Clock
	receiver  *receiver
	conns     []*Conn // by file descriptor
	deadlines deadlines
	unread    []*Conn // there is more to read than in one turn
	taken     []command
	events    []unix.EpollEvent
	pace      pace
	looked    time.Time // when the kernel last reported events
	emptied   time.Time // everything read in this round arrived after this
}

// command is an instruction to the thread.
type command struct {
	kind     kind
	conn     *Conn
	handler  Handler
	deadline time.Time
	since    time.Time // for begin: nothing of the answer arrived earlier
	err      error
}

type kind uint8

const (
	begin          kind = iota // read conn for handler
	reportWritable             // notify conn when more can be written
	end                        // end the exchange of handler with err
)

// New starts a loop.
func New() (*Loop, error) {
	l := &Loop{
		epoll: -1, wakeup: -1, stamps: -1, ended: make(chan struct{}),
		clock: stamp.NewClock(), receiver: newReceiver(), delays: stats.NewDurations(3), events: make([]unix.EpollEvent, maxEvents),
	}
	if err := l.open(); err != nil {
		l.close()
		return nil, err
	}
	go l.run()
	return l, nil
}

func (l *Loop) open() (err error) {
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	if l.wakeup, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	if l.stamps, err = stampAll(); err != nil {
		return err
	}
	return l.control(unix.EPOLL_CTL_ADD, l.wakeup, unix.EPOLLIN|unix.EPOLLET)
}

// stampAll makes the kernel timestamp everything it receives while the returned
// socket is open. The kernel starts a moment after the first socket asks for
// stamps and stops after the last one closes: without this socket, first arrivals
// would have no stamp.
func stampAll() (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	stamp.Enable(fd)
	return fd, nil
}

func (l *Loop) close() {
	for _, fd := range []int{l.epoll, l.wakeup, l.stamps} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// Close ends all exchanges with [ErrClosed] and waits for the thread to end. It
// does not close the connections.
func (l *Loop) Close() {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		return
	}
	l.closing = true
	l.wake()
	l.mu.Unlock()
	<-l.ended
	l.close()
}

// Delays returns the delays from the kernel's stamp of the last segment to the
// read, for all reads so far.
func (l *Loop) Delays() *stats.Durations { return l.delays.Since(nil) }

// send queues a command for the thread.
func (l *Loop) send(c command) {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		if c.kind == begin {
			c.handler.End(ErrClosed, Arrival{Time: time.Now()})
			c.conn.over <- struct{}{}
		}
		return
	}
	defer l.mu.Unlock()
	l.commands = append(l.commands, c)
	if l.asleep.Load() {
		l.wake() // before Close can close wakeup
	}
}

func (l *Loop) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	unix.Write(l.wakeup, one[:])
}

// run is the thread's main loop. Each round runs commands, then reads what has
// arrived.
func (l *Loop) run() {
	runtime.LockOSThread() // never unlocked: the thread ends with the loop
	defer close(l.ended)
	requestShortSlices()
	l.looked = time.Now()
	ready := 0
	for {
		// Do not delay the sender of a large request.
		if rest := l.pace.rest(time.Now()); rest > 0 && l.writers.Load() == 0 {
			pause(rest)
		}
		if ready < len(l.events) { // the last look returned all events
			l.emptied = l.looked
		}
		ready = l.wait()
		began := time.Now()
		l.pace.round(began, ready)
		if l.runCommands() {
			return
		}
		for _, e := range l.events[:ready] {
			l.serve(e)
		}
		l.readOn()
		for c := l.deadlines.passed(began); c != nil; c = l.deadlines.passed(began) {
			l.finish(c, os.ErrDeadlineExceeded)
		}
	}
}

// requestShortSlices asks the kernel for short CPU time slices, which are
// scheduled sooner. Older kernels ignore it.
func requestShortSlices() {
	if attr, err := unix.SchedGetAttr(0, 0); err == nil {
		attr.Runtime = uint64(100 * time.Microsecond)
		unix.SchedSetAttr(0, attr, 0)
	}
}

func pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	unix.Nanosleep(&t, nil)
}

// wait blocks until there are events or other work, and returns the number of
// events.
func (l *Loop) wait() (ready int) {
	if ready = l.look(0); ready > 0 {
		return ready
	}
	timeout := 0
	l.asleep.Store(true)
	if !l.hasCommands() && len(l.unread) == 0 {
		next := l.deadlines.next(time.Now())
		timeout = int(math.Ceil(next.Seconds() * 1e3))
	}
	ready, err := unix.EpollWait(l.epoll, l.events, timeout)
	l.asleep.Store(false)
	l.emptied = time.Now()
	if err != nil && err != unix.EINTR {
		panic(fmt.Errorf("waiting for connections: %w", err)) // somebody closed our descriptor
	}
	ready = max(ready, 0)
	return ready + l.look(ready)
}

// look appends the current events to the known ones without blocking. Anything it
// does not report arrived later. It is a raw system call because the scheduler
// might delay the thread after an ordinary one.
func (l *Loop) look(known int) (more int) {
	room := l.events[known:]
	if len(room) == 0 {
		return 0
	}
	l.looked = time.Now()
	n, _, err := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&room[0])), uintptr(len(room)), 0, 0, 0)
	if err != 0 {
		return 0
	}
	return int(n)
}

func (l *Loop) hasCommands() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.commands) > 0 || l.closing
}

// runCommands runs the queued commands and reports whether the loop is closing.
func (l *Loop) runCommands() (closing bool) {
	l.mu.Lock()
	l.taken, l.commands = l.commands, l.taken[:0]
	closing = l.closing
	l.mu.Unlock()
	for i, c := range l.taken {
		switch c.kind {
		case begin:
			l.begin(c)
		case reportWritable:
			if c.conn.handler != nil {
				l.control(unix.EPOLL_CTL_MOD, c.conn.fd, interest|unix.EPOLLOUT)
			}
		case end:
			if c.conn.handler == c.handler {
				l.finish(c.conn, c.err)
			}
		}
		l.taken[i] = command{}
	}
	if closing {
		for len(l.deadlines) > 0 {
			l.finish(l.deadlines[0], ErrClosed)
		}
	}
	return closing
}

const interest = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET

func (l *Loop) control(op, fd int, events uint32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}))
}

// begin starts an exchange. A connection stays watched until it is closed, so that
// further exchanges cost no system call.
func (l *Loop) begin(cmd command) {
	c := cmd.conn
	c.handler, c.since = cmd.handler, cmd.since
	l.deadlines.set(c, cmd.deadline)
	if !c.watched {
		if err := l.control(unix.EPOLL_CTL_ADD, c.fd, interest); err != nil {
			l.finish(c, err)
			return
		}
		c.watched, c.pending = true, true
		for len(l.conns) <= c.fd {
			l.conns = append(l.conns, nil)
		}
		l.conns[c.fd] = c
	}
	if c.pending {
		l.queue(c)
	} else {
		c.since = time.Time{} // nothing has arrived yet
	}
}

// serve handles one event. The event may belong to a connection that was closed in
// the meantime: reading the descriptor then finds nothing, or bytes that another
// event would report.
func (l *Loop) serve(e unix.EpollEvent) {
	if int(e.Fd) == l.wakeup {
		return // edge-triggered: need not be read
	}
	c := l.conns[e.Fd]
	if e.Events&unix.EPOLLOUT != 0 {
		select {
		case c.writable <- struct{}{}:
		default:
		}
	}
	if e.Events&^unix.EPOLLOUT != 0 && !c.queued {
		hungUp := e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
		l.read(c, hungUp)
	}
}

// queue adds a connection with more to read. What was not read may have arrived as
// early as what was.
func (l *Loop) queue(c *Conn) {
	if c.since.IsZero() {
		c.since = l.emptied
	}
	if !c.queued {
		c.queued = true
		l.unread = append(l.unread, c)
	}
}

// readOn gives the queued connections a turn, as many as time allows.
func (l *Loop) readOn() {
	began, turns := time.Now(), 0
	for _, c := range l.unread {
		if turns > 0 && time.Since(began) > backlogTime {
			break
		}
		turns++
		if c.queued = false; c.pending {
			l.read(c, true)
		}
	}
	l.unread = slices.Delete(l.unread, 0, turns)
}

// read reads what has arrived, up to a full buffer. A read that does not fill the
// buffer has emptied the socket, but the end of the stream may still follow.
func (l *Loop) read(c *Conn, toTheEnd bool) {
	c.pending = true
	if c.handler == nil { // idle: the next exchange reads it
		return
	}
	for got := 0; got < len(l.receiver.buf); {
		b, received, errno := l.receiver.receive(c.fd)
		switch {
		case errno == syscall.EINTR:
			continue
		case errno == syscall.EAGAIN:
			c.emptied()
			return
		case errno != 0:
			l.finish(c, os.NewSyscallError("read", errno))
			return
		case len(b) == 0:
			l.finish(c, io.EOF)
			return
		}
		at, delay := l.arrival(received)
		if at.Kernel {
			l.delays.Add(delay, 1)
			since := l.emptied
			if !c.since.IsZero() {
				since = c.since
			}
			at.Unread = max(at.Add(delay).Sub(since), delay)
		}
		if c.handler.Feed(b, at) {
			l.release(c)
			return
		}
		if len(b) < len(l.receiver.buf) && !toTheEnd {
			c.emptied()
			return
		}
		got += len(b)
	}
	l.queue(c)
}

// arrival returns when bytes with the kernel's stamp arrived, and how long ago that was.
func (l *Loop) arrival(received int64) (at Arrival, delay time.Duration) {
	at.Time, delay, at.Kernel = l.clock.Arrival(received)
	return at, delay
}

// finish ends an exchange whose handler is not done.
func (l *Loop) finish(c *Conn, why error) {
	c.handler.End(why, Arrival{Time: l.clock.Now()})
	l.release(c)
}

// release gives the connection back to the caller of Wait.
func (l *Loop) release(c *Conn) {
	c.handler = nil
	l.deadlines.remove(c)
	c.over <- struct{}{}
}
