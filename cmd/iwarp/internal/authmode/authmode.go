// Package authmode configures how both sides of a measurement authenticate each other.
// Their keys are public, and protect nothing.
package authmode

import (
	"bytes"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/cm"
)

// How connections are authenticated.
const (
	Plain = "plain" // not at all
	A     = "a"     // mode A of package cm, suite 1
	B     = "b"     // mode B, suite 1
	B2    = "b2"    // mode B, suite 2
	TLS   = "tls"   // TLS 1.3
)

// All are the names of all modes.
var All = []string{Plain, A, B, B2, TLS}

// MaxHalfOpen is more than the set-ups that any measurement has in progress.
const MaxHalfOpen = 1 << 14

// keyring returns the keyring of both sides.
func keyring() (*cm.Ring, error) {
	return cm.NewRing(cm.Key{ID: 1, Secret: bytes.Repeat([]byte{1}, 32), Primary: true})
}

// Initiate adds what auth needs to the configuration of a client's QPs.
func Initiate(auth string, qc *iwarp.QPConfig) error {
	switch auth {
	case Plain:
		return nil
	case TLS:
		var err error
		qc.TLS, err = ClientTLS()
		return err
	}
	ring, err := keyring()
	if err != nil {
		return err
	}
	c := cm.Config{Ring: ring, ID: [16]byte{'c'}, Mode: cm.ModeB}
	switch auth {
	case A:
		c.Mode = cm.ModeA
	case B2:
		c.Suite = cm.SuiteX25519
	}
	qc.Auth, err = cm.New(&c)
	return err
}

// Respond adds what auth needs to the configuration of a listener. All connections come from one
// source, which must not be mistaken for a flood.
func Respond(auth string, lc *iwarp.ListenConfig) error {
	switch auth {
	case Plain:
		return nil
	case TLS:
		var err error
		lc.TLS, err = ServerTLS()
		return err
	}
	ring, err := keyring()
	if err != nil {
		return err
	}
	// In mode A a server that has just started takes no connection, so this one claims to have started an hour ago.
	began := time.Hour
	c := cm.Config{
		Ring: ring, ID: [16]byte{'s'}, Accept: cm.Modes(cm.ModeA, cm.ModeB),
		Now: func() time.Time { return time.Now().Add(-began) },
		Limits: cm.Limits{
			MaxHalfOpen: MaxHalfOpen, PerSource: MaxHalfOpen, FailureBurst: 1 << 20, HMACs: 1 << 20,
		},
	}
	lc.Auth, err = cm.New(&c)
	began = 0
	return err
}

// ClientTLS returns the configuration of a client of ServerTLS.
func ClientTLS() (*tls.Config, error) {
	cert, err := certificate()
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13, ServerName: "127.0.0.1"}, nil
}

// ServerTLS returns the configuration of a server that has the certificate.
func ServerTLS() (*tls.Config, error) {
	cert, err := certificate()
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}, err
}

// certificate returns the same certificate in both processes.
func certificate() (tls.Certificate, error) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(nil, t, t, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}
