package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
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

	"moontide/replay/listen"
	"moontide/replay/runfile"
	"moontide/replay/weblog"
	"moontide/trace/atomicfile"
)

const (
	maxMessage   = 1 << 20     // bytes of a message, except for files
	pollTime     = time.Second // maximum wait for a new order in a response
	tickTime     = 200 * time.Millisecond
	messageEvery = 30 * time.Second // time between messages about missing parts
	strangers    = 64               // connections of others than parts; they wait for no response, and the longest waiting make room
	connsOfPart  = 4
	leaveTime    = 10 * time.Second // wait of part 1 until missing parts and those that disagree learn that the run was ended
)

// lead makes this process coordinate the parts.
func (p *Part) lead() error {
	ln, err := p.listen()
	if err != nil {
		return fmt.Errorf("serving the other parts: %w", err)
	}
	at := ln.Addr().(*net.TCPAddr)
	port := strconv.Itoa(at.Port)
	if p.Token == "" {
		p.Token = rand.Text()
		m := meeting{cmp.Or(p.Address, net.JoinHostPort(p.ownHost(), port)), p.Token}
		if p.tokenFile, err = m.write(p.Dir); err != nil {
			ln.Close()
			return err
		}
	}
	p.server = serve(ln, newCoordinator(p.Config, p.Clock()), p.Config)
	if p.Address = at.String(); at.IP.IsUnspecified() {
		p.Address = net.JoinHostPort("127.0.0.1", port)
	}
	return nil
}

// listen listens on the IP address given, on loopback if all parts are on this machine,
// else on all addresses: a host name may stand for a loopback address here. An IP address
// of something else, such as a proxy, is not listened on.
func (p *Part) listen() (net.Listener, error) {
	host, port, _ := net.SplitHostPort(p.Address)
	switch {
	case p.Address == "" && p.OneMachine:
		return net.Listen("tcp", "127.0.0.1:0")
	case host != "localhost" && net.ParseIP(host) == nil:
		return net.Listen("tcp", ":"+port)
	}
	ln, err := net.Listen("tcp", p.Address)
	if err != nil {
		if ln, _ = net.Listen("tcp", ":"+port); ln == nil {
			return nil, err
		}
		p.Message(fmt.Sprintf("%s is not an address of this machine: listening on all of its addresses", p.Address))
	}
	return ln, nil
}

// ownHost returns where others are likely to reach this machine.
func (p *Part) ownHost() string {
	if p.OneMachine {
		return "127.0.0.1"
	}
	if route, err := net.Dial("udp", "192.0.2.1:9"); err == nil { // sends nothing
		defer route.Close()
		return route.LocalAddr().(*net.UDPAddr).IP.String()
	}
	name, _ := os.Hostname()
	return cmp.Or(name, "127.0.0.1")
}

// server serves the coordinator over HTTP, in the process of part 1.
type server struct {
	Config
	http  *http.Server
	conns listen.Conns
	ended chan struct{} // closed when tick has returned
	stop  context.CancelFunc

	mu          sync.Mutex
	coordinator *coordinator
	changed     chan struct{} // closed and replaced when there is a new order
}

// serve serves the coordinator on a listener until close is called.
func serve(ln net.Listener, l *coordinator, c Config) *server {
	ctx, stop := context.WithCancel(context.Background())
	s := &server{Config: c, coordinator: l, ended: make(chan struct{}), changed: make(chan struct{}), stop: stop}
	s.conns.Most = strangers + connsOfPart*c.Of
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/report", s.handleReport)
	mux.HandleFunc("POST /v1/clock", s.handleClock)
	mux.HandleFunc("PUT /v1/parts/{number}/{file}", s.handleFile)
	s.http = &http.Server{
		Handler: s.authorized(mux), ReadHeaderTimeout: listen.HeadTime, IdleTimeout: listen.HeadTime, MaxHeaderBytes: 16 << 10,
		ConnState: func(conn net.Conn, state http.ConnState) { s.conns.Track(conn, state) }, ErrorLog: weblog.Logger,
	}
	go s.http.Serve(ln)
	go s.tick(ctx)
	return s
}

// authorized refuses requests without the token.
func (s *server) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.Token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.Token)) != 1 {
			w.Header().Set("Connection", "close")
			http.NewResponseController(w).SetReadDeadline(time.Now()) // the server waits for no rest of a body
			http.Error(w, "wrong token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// with calls f with the coordinator and wakes the requests that wait for a new order. It returns
// the order, and a channel that is closed when there is a newer one.
func (s *server) with(f func(l *coordinator)) (order, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.coordinator.order.Version
	if f(s.coordinator); s.coordinator.order.Version != before {
		close(s.changed)
		s.changed = make(chan struct{})
	}
	return s.coordinator.order, s.changed
}

func (s *server) tick(ctx context.Context) {
	defer close(s.ended)
	lastMessage := s.Clock()
	for pause(ctx); ctx.Err() == nil; pause(ctx) {
		missing := ""
		s.with(func(l *coordinator) {
			l.tick(s.Clock())
			if l.order.Phase == "" && l.order.Cancel == "" {
				missing = l.missing()
			}
		})
		if now := s.Clock(); missing != "" && now.Sub(lastMessage) >= messageEvery {
			lastMessage = now
			s.Message("waiting for parts that have not loaded: " + missing)
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
	o, changed := s.with(func(l *coordinator) { refused = l.report(s.Clock(), r) })
	switch {
	case refused == nil:
		if o.Version == r.Seen {
			select {
			case <-changed:
			case <-time.After(pollTime):
			case <-req.Context().Done():
			}
			o, _ = s.with(func(*coordinator) {})
		}
		json.NewEncoder(w).Encode(o)
	case errors.Is(refused, errEnding):
		http.Error(w, refused.Error(), http.StatusServiceUnavailable)
	default:
		s.Message(refused.Error())
		http.Error(w, refused.Error(), http.StatusConflict)
	}
}

func (s *server) handleClock(w http.ResponseWriter, req *http.Request) {
	received := s.Clock()
	json.NewEncoder(w).Encode(clockResponse{received, s.Clock()})
}

// partFiles are the files of a part's folder, run.json last: it completes the folder.
var partFiles = []string{runfile.RequestsFile, runfile.SamplesFile, runfile.SentFile, runfile.GapsFile, runfile.RunFile}

// folder returns the folder of a part beside parts.json.
func folder(number int) string { return "part-" + strconv.Itoa(number) }

// handleFile stores a file of a part's folder. It replaces a file of the run that is
// resumed.
func (s *server) handleFile(w http.ResponseWriter, req *http.Request) {
	number, err := strconv.Atoi(req.PathValue("number"))
	name := req.PathValue("file")
	if err != nil || number < 2 || number > s.Of || !slices.Contains(partFiles, name) {
		http.Error(w, "there is no such part or file", http.StatusNotFound)
		return
	}
	if err := storeFile(filepath.Join(s.Dir, folder(number)), name, req.Body); err != nil {
		s.Message(fmt.Sprintf("records of part %d: %v", number, err))
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
	if err == nil {
		defer f.Discard()
		if _, err = io.Copy(f, content); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("storing a part: %w", err)
	}
	return nil
}

// awaitOthers waits until the other parts have left or are lost.
func (s *server) awaitOthers() {
	begun := time.Now()
	for left := false; !left; time.Sleep(tickTime / 10) {
		s.with(func(l *coordinator) { left = l.othersLeft(time.Since(begun) < min(leaveTime, s.Timeout)) })
	}
}

// close ends the server once the other parts have left.
func (s *server) close() {
	s.awaitOthers()
	s.stop()
	s.http.Close()
	<-s.ended
}
