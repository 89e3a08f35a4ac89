package leasehold_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	leasehold "code.invalid/leasehold/go"
	"code.invalid/leasehold/go/internal/testserver"
)

// forward carries connections to a server, until the test ends.
func forward(t *testing.T, listener net.Listener, server string) {
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				_ = from.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
				}()
			}
		}
	}()
}

func TestARedisBehindASocketFile(t *testing.T) {
	redis := testserver.StartRedis(t)
	path := filepath.Join(t.TempDir(), "redis.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	forward(t, listener, redis.Address())
	lock(t, connect(t, "redis+unix://"+path+"?db=3"), "a")
	if size := redis.Do("EXISTS", "a"); size != ":0" {
		t.Errorf("it is in another database: %s", size)
	}
}

func TestARedisBehindTLS(t *testing.T) {
	redis := testserver.StartRedis(t)
	certificate, file := certificate(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	forward(t, listener, redis.Address())
	url := "rediss://" + listener.Addr().String()
	lock(t, connect(t, url+"?ca="+file), "a")
	for given, want := range map[string]string{"": "certificate", "?ca=/nowhere": "no such file"} {
		// On a busy machine a handshake takes longer than a request usually may.
		_, err := connect(t, url+given, leasehold.RequestTimeout(20*time.Second)).Lock(t.Context(), "b", leasehold.Wait(0))
		if failed := wants(t, err, leasehold.ErrUnavailable); !strings.Contains(failed.Error(), want) {
			t.Errorf("%v, not %q", failed, want)
		}
	}
}

// certificate is one for 127.0.0.1 that signs itself, and the file that has it.
func certificate(t *testing.T) (tls.Certificate, string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	made, err := x509.CreateCertificate(rand.Reader, is, is, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}, file
}
