package poll

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// Reads of one connection in one round, so that no other waits for long.
	mostReads = 8
	// Connections that the kernel names at once.
	mostEvents = 1024
)

// Loop reads connections. Its methods may be called from any goroutine.
type Loop struct {
	epoll  int // of these descriptors
	bell   int // wakes the thread
	stamps int // a socket that has the kernel stamp; see stampAll

	mu       sync.Mutex
	commands []command
	closing  bool
	asleep   atomic.Bool  // the thread waits and needs the bell
	writers  atomic.Int64 // exchanges that wait for room
	ended    chan struct{}
	delays   Counter

	// Of the thread alone.
	clock     clock
	receiver  *receiver
	conns     []*Conn // by descriptor
	deadlines deadlines
	unread    []*Conn // there may be more to read
	taken     []command
	events    []unix.EpollEvent
	pace      pace
	looked    time.Time // when the kernel was last asked what there is to read
	emptied   time.Time // nothing that this round reads was there before
}

// command is what the thread is asked to do.
type command struct {
	kind     kind
	conn     *Conn
	handler  Handler
	deadline time.Time
	since    time.Time // begin: nothing of the answer came before
	err      error
}

type kind uint8

const (
	begin    kind = iota // read conn for handler
	wantRoom             // tell conn when more can be written
	end                  // end the exchange that has handler with err
)

// New starts a loop.
func New() (*Loop, error) {
	l := &Loop{
		epoll: -1, bell: -1, stamps: -1, ended: make(chan struct{}),
		clock: newClock(readClocks), receiver: newReceiver(), events: make([]unix.EpollEvent, mostEvents),
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
	if l.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	if l.stamps, err = stampAll(); err != nil {
		return err
	}
	return l.control(unix.EPOLL_CTL_ADD, l.bell, unix.EPOLLIN|unix.EPOLLET)
}

// stampAll has the kernel stamp all that comes in, for as long as the socket
// is open that it returns. The kernel begins a moment after the first socket
// asks for stamps, and stops behind the last: without this, what arrives first
// would have none.
func stampAll() (fd int, err error) {
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	stamp(fd)
	return fd, nil
}

// stamp asks for the stamps of a socket. A kernel that refuses does not stamp,
// which the arrivals say.
func stamp(fd int) { unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) }

func (l *Loop) close() {
	for _, fd := range []int{l.epoll, l.bell, l.stamps} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// Close ends all exchanges with [ErrClosed] and returns when the thread has
// ended. Connections are left to their owners.
func (l *Loop) Close() {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		return
	}
	l.closing = true
	l.ring()
	l.mu.Unlock()
	<-l.ended
	l.close()
}

// Delays is the distribution of how late the loop was in reading, since it
// began.
func (l *Loop) Delays() Delays { return l.delays.Snapshot() }

// do asks the thread for something.
func (l *Loop) do(c command) {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		if c.kind == begin {
			c.handler.Ended(ErrClosed, Arrival{Time: time.Now()})
			c.conn.over <- struct{}{}
		}
		return
	}
	defer l.mu.Unlock()
	l.commands = append(l.commands, c)
	if l.asleep.Load() {
		l.ring() // before Close can take the bell away
	}
}

func (l *Loop) ring() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	unix.Write(l.bell, one[:])
}

// run is the thread. A round takes what is asked for, then what has arrived.
func (l *Loop) run() {
	runtime.LockOSThread() // for good: the thread ends with the loop
	defer close(l.ended)
	hurry()
	l.looked = time.Now()
	ready := 0
	for {
		// Who writes a large request must not wait for it.
		if rest := l.pace.rest(time.Now()); rest > 0 && l.writers.Load() == 0 {
			pause(rest)
		}
		if ready < len(l.events) { // the round before took all that was there
			l.emptied = l.looked
		}
		ready = l.wait()
		began := time.Now()
		l.pace.round(began, ready)
		if l.obey() {
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

// hurry asks the kernel for short turns of the processor, which it gives
// sooner in return. Older kernels do not know of it, and it is no matter.
func hurry() {
	if attr, err := unix.SchedGetAttr(0, 0); err == nil {
		attr.Runtime = uint64(100 * time.Microsecond)
		unix.SchedSetAttr(0, attr, 0)
	}
}

func pause(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	unix.Nanosleep(&t, nil)
}

// wait returns how many events there are when there are some, or something
// else is to be done.
func (l *Loop) wait() (ready int) {
	if ready = l.look(0); ready > 0 {
		return ready
	}
	timeout := 0
	l.asleep.Store(true)
	if !l.asked() && len(l.unread) == 0 {
		next := l.deadlines.next(time.Now())
		timeout = int(math.Ceil(next.Seconds() * 1e3))
	}
	ready, err := unix.EpollWait(l.epoll, l.events, timeout)
	l.asleep.Store(false)
	l.emptied = time.Now()
	if err != nil && err != unix.EINTR {
		panic(fmt.Errorf("waiting for connections: %w", err)) // a descriptor that is not ours
	}
	ready = max(ready, 0)
	return ready + l.look(ready)
}

// look adds the events that there are now to those that are known. It does not
// wait, so the scheduler, which may be long in giving a thread back what it
// had, need not hear of it: what is not named came after the look.
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

func (l *Loop) asked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.commands) > 0 || l.closing
}

// obey does what was asked for. It reports whether the loop is to end.
func (l *Loop) obey() (closing bool) {
	l.mu.Lock()
	l.taken, l.commands = l.commands, l.taken[:0]
	closing = l.closing
	l.mu.Unlock()
	for i, c := range l.taken {
		switch c.kind {
		case begin:
			l.begin(c)
		case wantRoom:
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

// begin starts an exchange. A connection stays watched until it is closed, and
// what it does between two exchanges is noted, so that each costs no further
// system call.
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
		l.unread = append(l.unread, c)
	} else {
		c.since = time.Time{} // it was silent until now
	}
}

// serve sees to one descriptor that the kernel named. An event may be of a
// connection that was closed meanwhile; the read that follows then finds
// nothing, or what the next event would have told.
func (l *Loop) serve(e unix.EpollEvent) {
	if int(e.Fd) == l.bell {
		return // edge-triggered: it need not be emptied
	}
	c := l.conns[e.Fd]
	if e.Events&unix.EPOLLOUT != 0 {
		select {
		case c.room <- struct{}{}:
		default:
		}
	}
	if e.Events&^unix.EPOLLOUT != 0 {
		hungUp := e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
		l.read(c, hungUp)
	}
}

// readOn goes on with what the round before left unread.
func (l *Loop) readOn() {
	before := len(l.unread)
	for _, c := range l.unread[:before] {
		if c.pending {
			l.read(c, true)
		}
	}
	l.unread = append(l.unread[:0], l.unread[before:]...)
}

// read takes what has arrived. A read that does not fill the buffer has
// emptied the socket, except that an end may lie behind.
func (l *Loop) read(c *Conn, toTheEnd bool) {
	c.pending = true
	if c.handler == nil { // it is idle: the next exchange will look
		return
	}
	for range mostReads {
		b, stamp, errno := l.receiver.receive(c.fd)
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
		at, delay := l.clock.arrival(stamp)
		if at.Kernel {
			l.delays.Add(delay, 1)
			since := l.emptied
			if !c.since.IsZero() {
				since = c.since
			}
			at.Unread = max(at.Add(delay).Sub(since), delay)
		}
		if c.handler.Arrived(c, b, at) {
			l.release(c)
			return
		}
		if len(b) < len(l.receiver.buf) && !toTheEnd {
			c.emptied()
			return
		}
	}
	l.unread = append(l.unread, c)
}

// finish ends an exchange for a reason other than that it had enough.
func (l *Loop) finish(c *Conn, why error) {
	c.handler.Ended(why, Arrival{Time: l.clock.now().Time})
	l.release(c)
}

// release leaves the connection to whoever waits for the end of the exchange,
// who may use it anew at once.
func (l *Loop) release(c *Conn) {
	c.handler = nil
	l.deadlines.remove(c)
	c.over <- struct{}{}
}
