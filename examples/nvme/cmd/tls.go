package main

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
)

// tlsFiles holds the names of the PEM files of one side. Without any of them there is no TLS.
type tlsFiles struct{ cert, key, ca string }

// flags adds the flags. A target and a host use the CAs for different things.
func (t *tlsFiles) flags(fs *flag.FlagSet, ca string) {
	fs.StringVar(&t.cert, "tls-cert", "", "use TLS 1.3, with the certificate in this `file`")
	fs.StringVar(&t.key, "tls-key", "", "the `file` with the key of the certificate")
	fs.StringVar(&t.ca, "tls-ca", "", ca)
}

// server returns the configuration of a target. nil: there is no TLS.
func (t *tlsFiles) server() (*tls.Config, error) {
	if *t == (tlsFiles{}) {
		return nil, nil
	}
	if t.cert == "" {
		return nil, usage("-tls-ca and -tls-key of a target need -tls-cert")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if err := t.addCertificate(c); err != nil {
		return nil, err
	}
	if t.ca != "" {
		pool, err := t.pool()
		if err != nil {
			return nil, err
		}
		c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// client returns the configuration of a host that connects to addr. nil: there is no TLS.
func (t *tlsFiles) client(addr string) (*tls.Config, error) {
	if *t == (tlsFiles{}) {
		return nil, nil
	}
	if t.ca == "" {
		return nil, usage("-tls-cert and -tls-key of a host need -tls-ca")
	}
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	name, _, _ = strings.Cut(name, "%") // a certificate contains addresses without zones
	pool, err := t.pool()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: name}
	if t.cert == "" && t.key == "" {
		return c, nil
	}
	return c, t.addCertificate(c)
}

func (t *tlsFiles) addCertificate(c *tls.Config) error {
	if t.cert == "" || t.key == "" {
		return usage("-tls-cert and -tls-key go together")
	}
	cert, err := tls.LoadX509KeyPair(t.cert, t.key)
	if err != nil {
		return fmt.Errorf("-tls-cert %s, -tls-key %s: %w", t.cert, t.key, err)
	}
	c.Certificates = []tls.Certificate{cert}
	return nil
}

func (t *tlsFiles) pool() (*x509.CertPool, error) {
	pem, err := os.ReadFile(t.ca)
	if err != nil {
		return nil, fmt.Errorf("-tls-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("-tls-ca: %s has no certificate in it", t.ca)
	}
	return pool, nil
}
