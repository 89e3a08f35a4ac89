package testserver

import (
	"net"
	"sync"
	"testing"
)

// Proxy stands before a server, and fails as a network does.
type Proxy struct {
	listener net.Listener
	server   string

	mu sync.Mutex
	// swallows and drops are what becomes of bytes from the server and to it.
	swallows, drops bool
	conns           map[net.Conn]bool
}

// StartProxy starts a proxy of a server, until the test ends.
func StartProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, server: server, conns: map[net.Conn]bool{}}
	var accepting sync.WaitGroup
	accepting.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.Reset()
		accepting.Wait()
	})
	return p
}

// URL is that of the server, through the proxy.
func (p *Proxy) URL() string { return "redis://" + p.listener.Addr().String() }

// LoseReplies lets requests arrive, and loses what the server answers; connections on which that has happened stay so.
func (p *Proxy) LoseReplies(lose bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallows = lose
}

// Block loses everything, as a network does that has been cut.
func (p *Proxy) Block(block bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallows, p.drops = block, block
}

// Reset closes all connections.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		go p.pipe(client, server, func() bool { return p.drops })
		go p.pipe(server, client, func() bool { return p.swallows })
	}
}

// pipe copies until one of the two is closed, and then closes both. What is lost is read all the same.
func (p *Proxy) pipe(from, to net.Conn, isLost func() bool) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, conn := range []net.Conn{from, to} {
			_ = conn.Close()
			delete(p.conns, conn)
		}
	}()
	piece := make([]byte, 4096)
	lost := false
	for {
		n, err := from.Read(piece)
		p.mu.Lock()
		// What comes after lost bytes never arrives on the same connection.
		lost = lost || isLost()
		p.mu.Unlock()
		if n > 0 && !lost {
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
