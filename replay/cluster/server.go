package cluster

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"moontide/replay"
	"moontide/replay/listen"
	"moontide/replay/runfile"
	"moontide/replay/weblog"
	"moontide/trace/atomicfile"
)

const (
	maxMessage  = 1 << 20     // bytes of a message, except for files
	pollTime    = time.Second // maximum wait for a new order in an answer
	tickTime    = 200 * time.Millisecond
	sayMissing  = 30 * time.Second // time between messages about missing parts
	strangers   = 64               // connections of others than parts; they wait for no answer, and the longest waiting make room
	connsOfPart = 4
	leaveTime   = 10 * time.Second // wait of part 1 until missing parts and those that disagree learn that the run was ended
)

// server serves the leader over HTTP, in the process of part 1.
type server struct {
	token   string
	dir     string
	clock   func() time.Time
	message func(string)
	http    *http.Server
	conns   listen.Conns
	ended   chan struct{} // closed when tick has returned
	stop    context.CancelFunc
	absence time.Duration // see leaveTime

	mu      sync.Mutex
	leader  *leader
	changed chan struct{} // closed and replaced when the order changes
	version uint64        // of the order when changed was made
}

// serve serves the leader on a listener until close is called.
func serve(ln net.Listener, l *leader, c Config) *server {
	ctx, stop := context.WithCancel(context.Background())
	s := &server{token: c.Token, dir: c.Dir, clock: c.Clock, message: c.Message, leader: l, changed: make(chan struct{}), version: l.order.Version, ended: make(chan struct{}), stop: stop, absence: min(leaveTime, c.Timeout)}
	s.conns.Most = strangers + connsOfPart*c.Of
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/report", s.handleReport)
	mux.HandleFunc("POST /v1/clock", s.handleClock)
	mux.HandleFunc("PUT /v1/parts/{number}/{file}", s.handleFile)
	s.http = &http.Server{Handler: s.authorized(mux), ReadHeaderTimeout: listen.HeadTime, IdleTimeout: listen.HeadTime, MaxHeaderBytes: 16 << 10, ConnState: func(conn net.Conn, state http.ConnState) { s.conns.Track(conn, state) }, ErrorLog: weblog.Logger}
	go s.http.Serve(ln)
	go s.tick(ctx)
	return s
}

// authorized refuses requests without the token.
func (s *server) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.token)) != 1 {
			w.Header().Set("Connection", "close")
			http.NewResponseController(w).SetReadDeadline(time.Now()) // the server waits for no rest of a body
			http.Error(w, "wrong token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// with calls f with the leader and wakes the requests that wait for a new order.
func (s *server) with(f func(l *leader)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.leader)
	if v := s.leader.order.Version; v != s.version {
		s.version = v
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

func (s *server) tick(ctx context.Context) {
	defer close(s.ended)
	ticker := time.NewTicker(tickTime)
	defer ticker.Stop()
	said := s.clock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		missing := ""
		s.with(func(l *leader) {
			l.tick(s.clock())
			if l.order.Step == gathering && l.order.Cancel == "" {
				missing = l.missing()
			}
		})
		if now := s.clock(); missing != "" && now.Sub(said) >= sayMissing {
			said = now
			s.message("waiting for parts that have not loaded: " + missing)
		}
	}
}

func (s *server) handleReport(w http.ResponseWriter, req *http.Request) {
	var r report
	if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxMessage)).Decode(&r); err != nil {
		http.Error(w, "the report is not readable", http.StatusBadRequest)
		return
	}
	for _, text := range []*string{&r.Host, &r.Version, &r.Failure} {
		*text = short(*text)
	}
	var refused error
	s.with(func(l *leader) { refused = l.report(s.clock(), r) })
	if errors.Is(refused, errEnding) {
		http.Error(w, refused.Error(), http.StatusServiceUnavailable)
		return
	}
	if refused != nil {
		s.message(refused.Error())
		http.Error(w, refused.Error(), http.StatusConflict)
		return
	}
	answer(w, s.orderAfter(req.Context(), r.Seen))
}

// orderAfter waits for an order newer than a version, at most for pollTime.
func (s *server) orderAfter(ctx context.Context, seen uint64) order {
	late := time.NewTimer(pollTime)
	defer late.Stop()
	for {
		s.mu.Lock()
		o, changed := s.leader.order, s.changed
		s.mu.Unlock()
		if o.Version != seen {
			return o
		}
		select {
		case <-changed:
		case <-late.C:
			return o
		case <-ctx.Done():
			return o
		}
	}
}

func (s *server) handleClock(w http.ResponseWriter, req *http.Request) {
	received := s.clock()
	answer(w, stamps{received, s.clock()})
}

func answer(w http.ResponseWriter, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}

// partFiles are the files of a part's folder, run.json last: it completes the folder.
var partFiles = []string{runfile.RequestsFile, runfile.SamplesFile, runfile.SentFile, runfile.GapsFile, runfile.RunFile}

// folder returns the folder of a part beside parts.json.
func folder(number int) string { return "part-" + strconv.Itoa(number) }

// hasPart reports whether the folder of a part is in that of the run.
func hasPart(dir string, number int) bool {
	_, err := os.Stat(filepath.Join(dir, folder(number), runfile.RunFile))
	return err == nil
}

// handleFile stores a file of a part's folder. It replaces a file of the run that is
// resumed.
func (s *server) handleFile(w http.ResponseWriter, req *http.Request) {
	number, err := strconv.Atoi(req.PathValue("number"))
	name := req.PathValue("file")
	if err != nil || number < 2 || number > s.leader.of || !slices.Contains(partFiles, name) {
		http.Error(w, "there is no such part or file", http.StatusNotFound)
		return
	}
	if err := storeFile(filepath.Join(s.dir, folder(number)), name, req.Body); err != nil {
		s.message(fmt.Sprintf("records of part %d: %v", number, err))
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func storeFile(dir, name string, content io.Reader) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder of a part: %w", err)
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() { // what a link points to is not the run's
		return errors.Join(fmt.Errorf("storing a part: %s is not a folder", dir), err)
	}
	f, err := atomicfile.Replace(filepath.Join(dir, name))
	if err != nil {
		return fmt.Errorf("storing a part: %w", err)
	}
	if _, err = io.Copy(f, content); err != nil {
		f.Discard()
		return fmt.Errorf("storing a part: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("storing a part: %w", err)
	}
	return nil
}

// status returns the progress of all parts.
func (s *server) status() (sum replay.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leader.status()
}

// awaitGone waits until the other parts have left or are lost.
func (s *server) awaitGone() {
	begun := time.Now()
	for {
		gone := false
		s.with(func(l *leader) { gone = l.gone(time.Since(begun) < s.absence) })
		if gone {
			return
		}
		time.Sleep(tickTime / 10)
	}
}

// close ends the server once the other parts have left.
func (s *server) close() {
	s.awaitGone()
	s.stop()
	s.http.Close()
	<-s.ended
}
