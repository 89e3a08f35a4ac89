// Package redis sends the protocol's commands to one Redis, over one connection, and listens for releases on a second one while
// somebody waits.
package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// Place is the address of a Redis, and the login.
type Place struct {
	network, address string
	user, password   string
	database         int
	// Durable: the server keeps what it has acknowledged, whatever happens.
	Durable bool
	// host is what its certificate is for; without it, the connection is not encrypted.
	host string
	// authorities is a file with those to trust instead of the system's.
	authorities string
}

const (
	form = "write redis://host:6379/0, rediss://host or redis+unix:///run/redis.sock"
	most = 1_000_000
)

// Parse reads a url. Its errors show nothing of the url, which may have a password anywhere.
func Parse(text string) (Place, error) {
	at, err := url.Parse(text)
	if err != nil || at.Fragment != "" || strings.Contains(text, "#") {
		return Place{}, errors.New("this is no url: in a user or password, / ? # and @ are written %2F, %3F, %23 and %40; " + form)
	}
	place := Place{network: "tcp"}
	database := ""
	switch at.Scheme {
	case "redis", "valkey", "rediss", "valkeys":
		if at.Hostname() == "" {
			return Place{}, errors.New("the host is missing; " + form)
		}
		port := at.Port()
		if port == "" {
			port = "6379"
		}
		place.address = net.JoinHostPort(at.Hostname(), port)
		if at.Scheme == "rediss" || at.Scheme == "valkeys" {
			place.host = at.Hostname()
		}
		database = strings.TrimPrefix(at.Path, "/")
	case "redis+unix", "valkey+unix":
		if at.Host != "" || len(at.Path) < 2 {
			return Place{}, errors.New("name the socket by its full path, as redis+unix:///run/redis.sock")
		}
		place.network, place.address = "unix", at.Path
	case "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel":
		return Place{}, fmt.Errorf("%s is reached by another library in Go: open leasehold.RedisOver with a connection of package goredis or rueidis, as docs/start-go.md shows", at.Scheme)
	default:
		return Place{}, errors.New("this kind of store is not supported in Go yet; " + form)
	}
	if at.User != nil {
		place.user = at.User.Username()
		place.password, _ = at.User.Password()
	}
	return place.with(at.RawQuery, database)
}

func (p Place) with(query, database string) (Place, error) {
	given, err := url.ParseQuery(query)
	if err != nil {
		return Place{}, errors.New("its parameters are not encoded well")
	}
	for name, values := range given {
		if len(values) != 1 || values[0] == "" {
			// A name may be the rest of a password that was not escaped.
			return Place{}, errors.New("it has a parameter twice, or one without a value; escape ? as %3F in a password")
		}
		switch value := values[0]; name {
		case "db":
			database = value
		case "username":
			p.user = value
		case "password":
			p.password = value
		case "ca":
			if p.host == "" {
				return Place{}, errors.New("ca is for rediss only; leave it out")
			}
			p.authorities = value
		case "durable":
			if value != "yes" && value != "no" {
				return Place{}, errors.New("write durable=yes for a store that loses nothing in a restart, or leave it out")
			}
			p.Durable = value == "yes"
		case "wait_replicas", "cert", "key":
			return Place{}, fmt.Errorf("the parameter %s is not supported in Go yet", name)
		default:
			return Place{}, errors.New("it has an unknown parameter; there are ca, db, durable, password, username")
		}
	}
	if database != "" {
		number, err := strconv.Atoi(database)
		if err != nil || number < 0 || number > most {
			return Place{}, fmt.Errorf("the database is a number from 0 to %d, as in redis://host:6379/0", most)
		}
		p.database = number
	}
	if p.user != "" && p.password == "" {
		return Place{}, errors.New("it has a user without a password; write redis://user:password@host, or redis://:password@host")
	}
	return p, nil
}

// dial connects, and shakes hands where that is encrypted.
func (p Place) dial(ctx context.Context) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, p.network, p.address)
	if err != nil || p.host == "" {
		return conn, err
	}
	config := &tls.Config{ServerName: p.host, MinVersion: tls.VersionTLS12}
	if p.authorities != "" {
		// Read again for each connection, since it may be replaced.
		if config.RootCAs, err = authorities(p.authorities); err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
	encrypted := tls.Client(conn, config)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return encrypted, nil
}

func authorities(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", path)
	}
	return pool, nil
}
